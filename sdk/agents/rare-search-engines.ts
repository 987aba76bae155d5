/** Rarer crawlers of search engines, many small, regional or gone, by the texts in their user agents. */
import type { Operator } from './agent-list.ts'

/** `Vendor: text|text` per line, with texts as in `Operator.agents`. A vendor without texts is its own agent. */
const lines = `
Google: Googlebot-Mobile|APIs-Google|AppEngine-Google|google-xrawler
Google: Google-Structured-Data-Testing-Tool|Google-PhysicalWeb|Google Favicon
Google: Google-Site-Verification|Google-Certificates-Bridge|Google-Safety|Google-PageRenderer
Google: developers.google.com/+/web/snippet=Google web snippet|GoogleProducer|Googlebot-IA
Google: PlayStore-Google|gsa-crawler
Yandex: YandexAccessibilityBot|YandexUserproxy|YandexMobileBot|YandexMetrika|YandexTurbo
Yandex: YandexVideoParser|YandexVideo|YandexImageResizer|YandexAdNet|YandexBlogs|YandexCalendar
Yandex: YandexDirect|YandexDirectDyn|YandexFavicons|YandexForDomain|YandexMarket|YandexMedia
Yandex: YandexMobileScreenShotBot|YandexNews|YandexOntoDB|YandexOntoDBAPI|YandexPagechecker
Yandex: YandexPartner|YandexRCA|YandexSearchShop|YandexSitelinks|YandexSpravBot|YandexTracker
Yandex: YandexVertis|YandexVerticals|YandexWebmaster|YandexScreenshotBot|YaDirectFetcher
Yandex: yandex.com/bots=Yandex
Microsoft: librabot|msnbot-media=msnbot|msnbot-NewsBlogs=msnbot|msnbot-UDiscovery=msnbot
AISearchBot
NewsAI: newsai/
Apache Nutch: Nutch|Nutch-|/Nutch-=Nutch|NutchCVS
Jyxo: jyxobot
FAST: FAST-WebCrawler|FAST Enterprise Crawler
BIGLOTRON
Ask.com: Teoma|Ask Jeeves/Teoma=Teoma
Convera: ConveraCrawler
Seekbot
Gigablast: Gigabot|GigablastOpenSource
Exalead: Exabot|Exabot-Images
Alexa: Alexabot
Grub: grub.org=grub-client
Usine Nouvelle: UsineNouvelleCrawler
Entireweb: Speedy Spider
Fluffy
YaCy: yacybot
Tagoo: tagoobot
Worio: woriobot
Yanga
Pure: purebot
Linguee: Linguee Bot
Voila: VoilaBot
Scribd: scribdbot
Mail.ru: Mail.RU_Bot
Discovery Engine: discobot
FindThatFile
Indeed: IndeedBot|IndeedJobBot
Aboundex
Warebay: wbsearchbot
Edister: edisterbot
aiHit: aiHitBot
LB: lb-spider
Wotbox
Wocodi: wocbot
goo: ichiro
Acoon: acoonbot
OpenIndex: openindexspider|OICrawler
Arabot
WeSEE: WeSEE:Search
Qihoo 360: 360Spider|HaosouSpider
Picsearch: psbot|psbot-image|psbot-page
FR Crawler: fr-crawler
A6: A6-Indexer
Orange: OrangeBot
Findx: Findxbot
Yahoo Japan: Y!J-|Y!J
OpenHose: OpenHoseBot
Istella: IstellaBot|istellabot-nutch
DeuSu
Cliqz: Cliqzbot
Avira: SafeSearch microdata crawler
Gluten Free: Gluten Free Crawler
Femtosearch: FemtosearchBot
Alibaba: YisouSpider
Zum: ZumBot
AraTurka: Bot.AraTurka.com
Flamingo: Flamingo_SearchEngine
Wordup: WordupInfoSearch
AddSearch: AddSearchBot
Jooble: Jooblebot
NTENT: NTENTbot
JobboerseBot
Trovit: trovitBot
Seekport: SeekportBot|Seekport Crawler
Stract: StractBot
Nicecrawler
Neeva: Neevabot
Alexandria: AlexandriaOrgBot
INETDEX: INETDEX-BOT
PhxBot
Geedo: GeedoBot|GeedoProductSearch|GeedoShopProductFinder
FindFiles.net: FindFiles.net-
Fynd: FyndSearchEngine-Crawler|FyndSearchEngine-ReCrawler
Greppr: Greppr Web Crawler
Ibou: IbouBot
lyonl: lyonl-asset-proxy|lyonl-crawler
Magi: MagiBot
NestDaddy: NestDaddybot
Scrub the Web: Scrubby
SMTnet: SMTnetPMBot
StepStone: stepstoneCrawlBot
Wepch: WepchSearchEngine
ZoomInfo: ZoomInfo-
7Siters
CyberFind: CyberFindCrawler
FediIndex
Fiper: fiperbot
Fleebs: FleebsBot
Matchory: MatchorySearch
NapBot
Soso: Sosospider
Wadoo: WadooBot
WikiDo
Youdao: YoudaoBot
WiseNut: ZyBorg
Blekko: blekkobot
BR Crawler: br-crawler
OpenTheBox: OpenTheBoxBot
Swiftype: Swiftbot
Zealbot
Algolia: Algolia Crawler
Coveo: Coveobot
Freespoke: crawler.freespoke.com=Freespoke
Funnelback
Gabanza: Gabanzabot
GlobalWebSearch: GlobalWebSearch|GlobalWebSearchx
Golfe: Golfe/
Intelligence X: intelx.io_bot
jobswithGPT: jobswithgptcom-bot
Level9: Level9SearchBot
Rambler: top100.rambler.ru crawler
Searcherweb
Searcherxweb
SearchExpress
Site Search 360: SiteSearch360
Startpage: StartpagePrivateImageProxy
Swisscows
TheInternetSearch: TheInternetSearch|TheInternetSearchx
VSU: VsuSearchSpider
`

export const rareSearchEngines: Operator[] = lines
  .trim()
  .split('\n')
  .map((line) => {
    const [vendor = '', names = vendor] = line.split(': ')
    return { vendor, agents: Object.fromEntries(names.split('|').map((name) => [name, 'search'])) }
  })
