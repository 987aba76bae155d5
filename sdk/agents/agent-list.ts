/**
 * Who crawls for AI and for search: operators, the names their agents give themselves, what each fetches for.
 *
 * The names are those of crawler-user-agents (MIT, see NOTICE), whose samples the test runs; operators, purposes and
 * sources are ours, as that list has none.
 */

/**
 * `training`: collects text for models. `search`: builds an index that answers cite or list. `assistant`: fetches a
 * page because a person asked for it just now.
 */
export type Purpose = 'training' | 'search' | 'assistant'

export interface Operator {
  vendor: string
  /** Where the operator, or failing that somebody else, documents the agents. */
  source: string
  agents: { [name: string]: Purpose }
}

/** Goes into `agent.detectionVersion`, so that old detections can be told from new ones. */
export const listVersion = '2026-11'

export const operators: Operator[] = [
  {
    vendor: 'OpenAI',
    source: 'https://platform.openai.com/docs/bots',
    agents: { GPTBot: 'training', 'OAI-SearchBot': 'search', 'ChatGPT-User': 'assistant' },
  },
  {
    vendor: 'Anthropic',
    source: 'https://support.anthropic.com/en/articles/8896518',
    agents: {
      ClaudeBot: 'training',
      'anthropic-ai': 'training',
      'Claude-Web': 'training',
      'Claude-SearchBot': 'search',
      'Claude-User': 'assistant',
    },
  },
  {
    vendor: 'Google',
    source: 'https://developers.google.com/search/docs/crawling-indexing/overview-google-crawlers',
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
    },
  },
  {
    vendor: 'Microsoft',
    source: 'https://www.bing.com/webmasters/help/which-crawlers-does-bing-use-8c184ec0',
    agents: { bingbot: 'search', msnbot: 'search', adidxbot: 'search' },
  },
  {
    vendor: 'Perplexity',
    source: 'https://docs.perplexity.ai/guides/bots',
    agents: { PerplexityBot: 'search', 'Perplexity-User': 'assistant' },
  },
  {
    vendor: 'Meta',
    source: 'https://developers.facebook.com/docs/sharing/webmasters/web-crawlers',
    agents: {
      'meta-externalagent': 'training',
      FacebookBot: 'training',
      'meta-externalfetcher': 'assistant',
    },
  },
  {
    vendor: 'Apple',
    source: 'https://support.apple.com/en-us/119829',
    agents: { Applebot: 'search' },
  },
  {
    vendor: 'Amazon',
    source: 'https://developer.amazon.com/amazonbot',
    agents: {
      Amazonbot: 'training',
      'Amzn-SearchBot': 'search',
      'Amzn-User': 'assistant',
      KendraBot: 'search',
    },
  },
  {
    vendor: 'ByteDance',
    source: 'https://stackoverflow.com/questions/57908900/what-is-the-bytespider-user-agent',
    agents: { Bytespider: 'training', TikTokSpider: 'training' },
  },
  {
    vendor: 'Mistral AI',
    source: 'https://docs.mistral.ai/robots',
    agents: { 'MistralAI-User': 'assistant' },
  },
  {
    vendor: 'Cohere',
    source: 'https://datadome.co/bots/cohere-training-data-crawler/',
    agents: { 'cohere-training-data-crawler': 'training', 'cohere-ai': 'assistant' },
  },
  {
    vendor: 'DeepSeek',
    source: 'http://deepseek.com/bot',
    agents: { DeepSeekBot: 'training' },
  },
  {
    vendor: 'Zhipu AI',
    source: 'https://chatglm.cn/',
    agents: { 'ChatGLM-Spider': 'training' },
  },
  {
    vendor: 'Common Crawl',
    source: 'https://commoncrawl.org/ccbot',
    agents: { CCBot: 'training' },
  },
  {
    vendor: 'Allen Institute for AI',
    source: 'https://allenai.org/crawler',
    agents: { AI2Bot: 'training' },
  },
  {
    vendor: 'Diffbot',
    source: 'http://www.diffbot.com',
    agents: { Diffbot: 'training' },
  },
  {
    vendor: 'SB Intuitions',
    source: 'https://www.sbintuitions.co.jp/bot/',
    agents: { SBIntuitionsBot: 'training' },
  },
  {
    vendor: 'LAION',
    source: 'https://laion.ai/',
    agents: { 'laion-huggingface-processor': 'training' },
  },
  {
    vendor: 'img2dataset',
    source: 'https://github.com/rom1504/img2dataset',
    agents: { img2dataset: 'training' },
  },
  {
    vendor: 'Hive',
    source: 'https://imagesift.com/about',
    agents: { ImagesiftBot: 'search' },
  },
  {
    vendor: 'Webz.io',
    source: 'http://omgili.com',
    agents: { omgili: 'training' },
  },
  {
    vendor: 'You.com',
    source: 'https://you.com/',
    agents: { YouBot: 'search' },
  },
  {
    vendor: 'DuckDuckGo',
    source: 'https://duckduckgo.com/duckduckgo-help-pages/results/duckassistbot',
    agents: { DuckDuckBot: 'search', DuckAssistBot: 'assistant' },
  },
  {
    vendor: 'Brave',
    source: 'https://search.brave.com/help/brave-search-crawler',
    agents: { BraveBot: 'search' },
  },
  {
    vendor: 'Kagi',
    source: 'https://kagi.com/bot',
    agents: { Kagibot: 'search', 'kagi-fetcher': 'assistant' },
  },
  {
    vendor: 'Mojeek',
    source: 'https://www.mojeek.com/bot.html',
    agents: { MojeekBot: 'search' },
  },
  {
    vendor: 'Qwant',
    source: 'https://help.qwant.com/bot/',
    agents: { Qwantbot: 'search', Qwantify: 'search' },
  },
  {
    vendor: 'Yandex',
    source: 'https://yandex.com/bots',
    agents: { YandexBot: 'search', YandexImages: 'search', YandexRenderResourcesBot: 'search' },
  },
  {
    vendor: 'Baidu',
    source: 'http://www.baidu.com/search/spider.html',
    agents: { Baiduspider: 'search' },
  },
  {
    vendor: 'Sogou',
    source: 'http://www.sogou.com/docs/help/webmasters.htm#07',
    agents: { Sogou: 'search' },
  },
  {
    vendor: 'Huawei',
    source: 'https://webmaster.petalsearch.com/site/petalbot',
    agents: { PetalBot: 'search', PanguBot: 'training' },
  },
  {
    vendor: 'Naver',
    source: 'http://naver.me/bot',
    agents: { Yeti: 'search', NaverBot: 'search' },
  },
  {
    vendor: 'Kakao',
    source: 'http://cs.daum.net/faq/15/4118.html?faqId=28966',
    agents: { Daum: 'search' },
  },
  {
    vendor: 'Seznam',
    source: 'http://napoveda.seznam.cz/en/seznambot-intro/',
    agents: { SeznamBot: 'search' },
  },
  {
    vendor: 'Coc Coc',
    source: 'http://help.coccoc.com/',
    agents: { coccoc: 'search', 'coccocbot-web': 'search' },
  },
  {
    vendor: 'Yahoo',
    source: 'http://help.yahoo.com/help/us/ysearch/slurp',
    agents: { Slurp: 'search' },
  },
  {
    vendor: 'Timpi',
    source: 'https://timpi.io',
    agents: { Timpibot: 'search' },
  },
  {
    vendor: 'Open Web Search',
    source: 'https://ows.eu/owler',
    agents: { Owler: 'search' },
  },
  {
    vendor: 'Marginalia',
    source: 'https://search.marginalia.nu',
    agents: { 'search.marginalia.nu': 'search' },
  },
  {
    vendor: 'Liner',
    source: 'https://docs.getliner.com/docs/linerbot',
    agents: { LinerBot: 'search' },
  },
  {
    vendor: 'Phind',
    source: 'https://www.phind.com/',
    agents: { PhindBot: 'search' },
  },
  {
    vendor: 'iAsk',
    source: 'https://iask.ai/',
    agents: { iAskBot: 'search' },
  },
  {
    vendor: 'Linkup',
    source: 'https://linkup.so/bot',
    agents: { LinkupBot: 'search' },
  },
  {
    vendor: 'Tavily',
    source: 'https://tavily.com/',
    agents: { TavilyBot: 'assistant' },
  },
  {
    vendor: 'Parallel',
    source: 'https://docs.parallel.ai/resources/crawler',
    agents: { ShapBot: 'search' },
  },
  {
    vendor: 'Valyu',
    source: 'https://valyu.ai/crawler',
    agents: { HenkBot: 'search' },
  },
  {
    vendor: 'Firecrawl',
    source: 'https://firecrawl.dev/',
    agents: { FirecrawlAgent: 'assistant' },
  },
  {
    vendor: 'Cognition',
    source: 'https://docs.devin.ai/get-started/devin-intro',
    agents: { Devin: 'assistant' },
  },
]
