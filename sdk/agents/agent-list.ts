/**
 * The agents that `detectAgent` knows: operators, the names in their user agents, and what each fetches for.
 *
 * The names come from crawler-user-agents (MIT, see NOTICE): every pattern tagged `ai-crawler` or `search-engine`. Its
 * samples are the test's. Operators and purposes are ours. `agent-sources.ts` says where each operator documents them.
 */

/**
 * `training`: collects text for models. `search`: builds an index that answers cite or list. `assistant`: fetches a
 * page for a person who waits for it. `other`: checks advertisements, makes previews, reads feeds or watches a site.
 */
export type Purpose = 'training' | 'search' | 'assistant' | 'other'

export interface Operator {
  vendor: string
  /**
   * By the text in the user agent, matched in any letter case where it stands as a product of its own: at the start or
   * behind a space, a bracket or `;`, and in front of the same, `/` or the end. `spider.com=Spider` reports "Spider"
   * where the user agent has "spider.com". A text that ends in `/` or `-` may be followed by anything; its last
   * character is not reported. Names that are everyday words, such as Devin, end in `/`.
   */
  agents: { [text: string]: Purpose }
}

/** The name that `detectAgent` reports for an entry of `agents`. */
export function reportedName(entry: string): string {
  const [text = '', name = text] = entry.split('=')
  return name.replace(/[/-]$/, '')
}

/** The day of the last change. Goes into `agent.detectionVersion`, so that old detections can be told from new ones. */
export const listVersion = '2026-11-29'

export const operators: Operator[] = [
  {
    vendor: 'OpenAI',
    agents: {
      GPTBot: 'training',
      'OAI-SearchBot': 'search',
      'ChatGPT-User': 'assistant',
      'ChatGPT-Atlas': 'assistant',
      'ChatGPT Atlas=ChatGPT-Atlas': 'assistant',
      'OAI-AdsBot': 'other',
      'ChatGPT connectors': 'assistant',
    },
  },
  {
    vendor: 'Anthropic',
    agents: {
      ClaudeBot: 'training',
      'anthropic-ai': 'training',
      'Claude-Web': 'training',
      'Claude-SearchBot': 'search',
      'Claude-User': 'assistant',
      'Claude-Code': 'assistant',
    },
  },
  {
    vendor: 'Google',
    agents: {
      Googlebot: 'search',
      'Googlebot-Image': 'search',
      'Googlebot-News': 'search',
      'Googlebot-Video': 'search',
      'Storebot-Google': 'search',
      'Google-InspectionTool': 'search',
      GoogleOther: 'training',
      'Google-CloudVertexBot': 'search',
      'Gemini-Deep-Research': 'assistant',
      'Google-NotebookLM': 'assistant',
      'Google-Agent': 'assistant',
      'Google-Extended': 'training',
      'Google-Read-Aloud': 'assistant',
      'GoogleOther-Image': 'training',
      'GoogleOther-Video': 'training',
      'CloudVertexBot=Google-CloudVertexBot': 'search',
      'NotebookLM=Google-NotebookLM': 'assistant',
      'GoogleAgent-Mariner': 'assistant',
      'GoogleAgent-URLContext': 'assistant',
      'Google-Gemini-CLI': 'assistant',
      'Google-Firebase': 'assistant',
      'AdsBot-Google': 'other',
      'AdsBot-Google-Mobile': 'other',
      'AdsBot-Google-Mobile-Apps=AdsBot-Google-Mobile': 'other',
      'Mediapartners-Google': 'other',
      'FeedFetcher-Google': 'other',
    },
  },
  {
    vendor: 'Microsoft',
    agents: {
      bingbot: 'search',
      msnbot: 'search',
      adidxbot: 'search',
      'AzureAI-SearchBot': 'search',
      officestorebot: 'search',
      msrbot: 'search',
      BingPreview: 'other',
      MicrosoftPreview: 'other',
    },
  },
  {
    vendor: 'Perplexity',
    agents: {
      PerplexityBot: 'search',
      'Perplexity-User': 'assistant',
      PerplexityUser: 'assistant',
      'Comet/': 'assistant',
    },
  },
  {
    vendor: 'Meta',
    agents: {
      'meta-externalagent': 'training',
      FacebookBot: 'training',
      'meta-externalfetcher': 'assistant',
      'meta-webindexer': 'search',
    },
  },
  {
    vendor: 'Apple',
    agents: { Applebot: 'search', 'Applebot-Extended': 'training' },
  },
  {
    vendor: 'Amazon',
    agents: {
      Amazonbot: 'training',
      'Amzn-SearchBot': 'search',
      'Amzn-User': 'assistant',
      KendraBot: 'search',
      AmazonProductDiscovery: 'search',
      AmazonSellerInitiatedListing: 'assistant',
      NovaAct: 'assistant',
      'Agent-NovaAct=NovaAct': 'assistant',
      'amazon-kendra': 'search',
      'amazon-QBusiness': 'search',
      AmazonBuyForMe: 'assistant',
      bedrockbot: 'training',
      'Amazon-Bedrock-AgentCore-Browser': 'assistant',
      AmazonAdBot: 'other',
    },
  },
  {
    vendor: 'ByteDance',
    agents: {
      Bytespider: 'training',
      TikTokSpider: 'training',
      imageSpider: 'training',
      ToutiaoSpider: 'search',
    },
  },
  {
    vendor: 'Mistral AI',
    agents: { 'MistralAI-User': 'assistant', 'MistralAI-Index': 'search', 'MistralAI-Training': 'training' },
  },
  {
    vendor: 'Cohere',
    agents: { 'cohere-training-data-crawler': 'training', 'cohere-ai': 'assistant' },
  },
  {
    vendor: 'DeepSeek',
    agents: { DeepSeekBot: 'training' },
  },
  {
    vendor: 'Zhipu AI',
    agents: { 'ChatGLM-Spider': 'training' },
  },
  {
    vendor: 'Common Crawl',
    agents: { CCBot: 'training' },
  },
  {
    vendor: 'Allen Institute for AI',
    agents: { AI2Bot: 'training', 'Ai2Bot-Dolma': 'training', 'AI2Bot-DeepResearchEval': 'assistant' },
  },
  {
    vendor: 'Diffbot',
    agents: { Diffbot: 'training' },
  },
  {
    vendor: 'SB Intuitions',
    agents: { SBIntuitionsBot: 'training' },
  },
  {
    vendor: 'LAION',
    agents: { 'laion-huggingface-processor': 'training', LAIONDownloader: 'training' },
  },
  {
    vendor: 'img2dataset',
    agents: { img2dataset: 'training' },
  },
  {
    vendor: 'Hive',
    agents: { ImagesiftBot: 'search' },
  },
  {
    vendor: 'Webz.io',
    agents: { omgili: 'training', omgilibot: 'training', 'Webzio-Extended': 'training' },
  },
  {
    vendor: 'You.com',
    agents: { YouBot: 'search' },
  },
  {
    vendor: 'DuckDuckGo',
    agents: {
      DuckDuckBot: 'search',
      DuckAssistBot: 'assistant',
      'DuckDuckGo-Favicons-Bot': 'search',
      'DuckDuckBot-Https=DuckDuckBot': 'search',
    },
  },
  {
    vendor: 'Brave',
    agents: { BraveBot: 'search' },
  },
  {
    vendor: 'Kagi',
    agents: { Kagibot: 'search', 'kagi-fetcher': 'assistant' },
  },
  {
    vendor: 'Mojeek',
    agents: { MojeekBot: 'search' },
  },
  {
    vendor: 'Qwant',
    agents: { Qwantbot: 'search', Qwantify: 'search', 'Qwantbot-news': 'search' },
  },
  {
    vendor: 'Yandex',
    agents: {
      YandexBot: 'search',
      YandexImages: 'search',
      YandexRenderResourcesBot: 'search',
      YandexAdditional: 'search',
      YandexAdditionalBot: 'search',
    },
  },
  {
    vendor: 'Baidu',
    agents: { Baiduspider: 'search', 'Baiduspider-render': 'search', YiyanBot: 'assistant' },
  },
  {
    vendor: 'Sogou',
    agents: { Sogou: 'search' },
  },
  {
    vendor: 'Huawei',
    agents: { PetalBot: 'search', PanguBot: 'training', AspiegelBot: 'search' },
  },
  {
    vendor: 'Naver',
    agents: { Yeti: 'search', NaverBot: 'search' },
  },
  {
    vendor: 'Kakao',
    agents: { Daum: 'search' },
  },
  {
    vendor: 'Seznam',
    agents: { SeznamBot: 'search', SeznamHomepageCrawler: 'search' },
  },
  {
    vendor: 'Coc Coc',
    agents: {
      coccoc: 'search',
      'coccocbot-web': 'search',
      'coccocbot-image': 'search',
      'image.coccoc=coccocbot-image': 'search',
      'imagecoccoc=coccocbot-image': 'search',
    },
  },
  {
    vendor: 'Yahoo',
    agents: { Slurp: 'search' },
  },
  {
    vendor: 'Timpi',
    agents: { Timpibot: 'search' },
  },
  {
    vendor: 'Open Web Search',
    agents: { Owler: 'search', 'OWLer-W=Owler': 'search' },
  },
  {
    vendor: 'Marginalia',
    agents: { 'search.marginalia.nu': 'search' },
  },
  {
    vendor: 'Liner',
    agents: { LinerBot: 'search' },
  },
  {
    vendor: 'Phind',
    agents: { PhindBot: 'search' },
  },
  {
    vendor: 'iAsk',
    agents: { iAskBot: 'search' },
  },
  {
    vendor: 'Linkup',
    agents: { LinkupBot: 'search' },
  },
  {
    vendor: 'Tavily',
    agents: { TavilyBot: 'assistant' },
  },
  {
    vendor: 'Parallel',
    agents: { ShapBot: 'search', 'Shap-User': 'assistant' },
  },
  {
    vendor: 'Valyu',
    agents: { HenkBot: 'search' },
  },
  {
    vendor: 'Firecrawl',
    agents: { FirecrawlAgent: 'assistant' },
  },
  {
    vendor: 'Cognition',
    agents: { 'Devin/': 'assistant' },
  },
  {
    vendor: 'xAI',
    agents: { GrokBot: 'training', 'xAI-Grok': 'assistant', 'Grok-DeepSearch': 'assistant' },
  },
  {
    vendor: 'Manus',
    agents: { 'Manus-User': 'assistant' },
  },
  {
    vendor: 'Apify',
    agents: { ApifyBot: 'training', ApifyWebsiteContentCrawler: 'training' },
  },
  {
    vendor: 'Atlassian',
    agents: { 'atlassian-bot': 'search' },
  },
  {
    vendor: 'Big Sur AI',
    agents: { 'bigsur.ai': 'search' },
  },
  {
    vendor: 'Bright Data',
    agents: { Brightbot: 'training' },
  },
  {
    vendor: 'Cloudflare',
    agents: { 'Cloudflare-AutoRAG': 'search' },
  },
  {
    vendor: 'Channel3',
    agents: { Channel3Bot: 'search' },
  },
  {
    vendor: 'Direqt',
    agents: { Anomura: 'search' },
  },
  {
    vendor: 'Kangaroo LLM',
    agents: { 'Kangaroo Bot': 'training' },
  },
  {
    vendor: 'Poggio',
    agents: { 'Poggio-Citations': 'search' },
  },
  {
    vendor: 'Spider',
    agents: { 'spider.com=Spider': 'training' },
  },
  {
    vendor: 'Zanista',
    agents: { ZanistaBot: 'search' },
  },
  {
    vendor: 'Exte',
    agents: { ExteContextCrawl: 'search' },
  },
  {
    vendor: 'Flyriver',
    agents: { Flyriverbot: 'search' },
  },
  {
    vendor: 'Aranet',
    agents: { 'Aranet-SearchBot': 'search' },
  },
  {
    vendor: 'Crawl4AI',
    agents: { crawl4ai: 'training', 'crawl4ai-adapter': 'training' },
  },
  {
    vendor: 'Sina',
    agents: { iaskspider: 'search' },
  },
  {
    vendor: 'Kunato',
    agents: { KunatoCrawler: 'training' },
  },
  {
    vendor: 'Ceramic',
    agents: { TerraCotta: 'training' },
  },
  {
    vendor: 'Semantic Visions',
    agents: {
      'semantic-visions': 'training',
      'semantic-visions-discovery': 'training',
      'semantic-visions.com=semantic-visions': 'training',
    },
  },
  {
    vendor: 'TaraGroup',
    agents: { 'TaraGroup Intelligent Bot': 'training' },
  },
  {
    vendor: 'Thinkbot',
    agents: { Thinkbot: 'training' },
  },
  {
    vendor: 'TuringOS',
    agents: { 'TSM-turingos-': 'training' },
  },
  {
    vendor: 'ImageMind',
    agents: { ImageMind: 'training' },
  },
  {
    vendor: 'Novellum',
    agents: { Novellum: 'training' },
  },
  {
    vendor: 'Sider',
    agents: { 'linkReader/': 'assistant' },
  },
  {
    vendor: 'Spawning',
    agents: { 'Spawning-AI': 'training' },
  },
  {
    vendor: 'The Knowledge AI',
    agents: { 'The Knowledge AI': 'training' },
  },
  {
    vendor: 'Moonshot AI',
    agents: { 'Kimi-User': 'assistant' },
  },
  {
    vendor: 'Alibaba',
    agents: { TongyiBot: 'assistant' },
  },
  {
    vendor: 'Exa',
    agents: { ExaSearchBot: 'search' },
  },
  {
    vendor: 'Querit',
    agents: { 'Querit-SearchBot': 'search', QueritBot: 'search' },
  },
  {
    vendor: 'Andi',
    agents: { Andibot: 'search' },
  },
  {
    vendor: 'NICT',
    agents: { 'ICC-Crawler': 'training' },
  },
  {
    vendor: 'ROIS',
    agents: { Cotoyogi: 'training' },
  },
  {
    vendor: 'Mozilla',
    agents: { 'Mozilla-Tabstack': 'assistant' },
  },
  {
    vendor: 'Klaviyo',
    agents: { KlaviyoAIBot: 'assistant' },
  },
  {
    vendor: 'Lyrenth',
    agents: { AIWebIndex: 'search' },
  },
  {
    vendor: 'Pinterest',
    agents: { Pinterestbot: 'other' },
  },
  {
    vendor: 'Stripe',
    agents: { Stripebot: 'other' },
  },
  {
    vendor: 'UptimeRobot',
    agents: { UptimeRobot: 'other' },
  },
  {
    vendor: 'Adyen',
    agents: { Adyen: 'other' },
  },
]
