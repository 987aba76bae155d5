/**
 * Who crawls for AI and for search: operators, the names their agents give themselves, what each fetches for.
 *
 * The names are those of crawler-user-agents (MIT, see NOTICE), whose samples the test runs; operators and purposes
 * are ours, as that list has none. `agent-sources.ts` says where each is documented.
 */

/**
 * `training`: collects text for models. `search`: builds an index that answers cite or list. `assistant`: fetches a
 * page because a person asked for it just now.
 */
export type Purpose = 'training' | 'search' | 'assistant'

export interface Operator {
  vendor: string
  agents: { [name: string]: Purpose }
}

/** Goes into `agent.detectionVersion`, so that old detections can be told from new ones. */
export const listVersion = '2026-11'

export const operators: Operator[] = [
  {
    vendor: 'OpenAI',
    agents: { GPTBot: 'training', 'OAI-SearchBot': 'search', 'ChatGPT-User': 'assistant' },
  },
  {
    vendor: 'Anthropic',
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
    agents: { bingbot: 'search', msnbot: 'search', adidxbot: 'search' },
  },
  {
    vendor: 'Perplexity',
    agents: { PerplexityBot: 'search', 'Perplexity-User': 'assistant' },
  },
  {
    vendor: 'Meta',
    agents: {
      'meta-externalagent': 'training',
      FacebookBot: 'training',
      'meta-externalfetcher': 'assistant',
    },
  },
  {
    vendor: 'Apple',
    agents: { Applebot: 'search' },
  },
  {
    vendor: 'Amazon',
    agents: {
      Amazonbot: 'training',
      'Amzn-SearchBot': 'search',
      'Amzn-User': 'assistant',
      KendraBot: 'search',
    },
  },
  {
    vendor: 'ByteDance',
    agents: { Bytespider: 'training', TikTokSpider: 'training' },
  },
  {
    vendor: 'Mistral AI',
    agents: { 'MistralAI-User': 'assistant' },
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
    agents: { AI2Bot: 'training' },
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
    agents: { 'laion-huggingface-processor': 'training' },
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
    agents: { omgili: 'training' },
  },
  {
    vendor: 'You.com',
    agents: { YouBot: 'search' },
  },
  {
    vendor: 'DuckDuckGo',
    agents: { DuckDuckBot: 'search', DuckAssistBot: 'assistant' },
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
    agents: { Qwantbot: 'search', Qwantify: 'search' },
  },
  {
    vendor: 'Yandex',
    agents: { YandexBot: 'search', YandexImages: 'search', YandexRenderResourcesBot: 'search' },
  },
  {
    vendor: 'Baidu',
    agents: { Baiduspider: 'search' },
  },
  {
    vendor: 'Sogou',
    agents: { Sogou: 'search' },
  },
  {
    vendor: 'Huawei',
    agents: { PetalBot: 'search', PanguBot: 'training' },
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
    agents: { SeznamBot: 'search' },
  },
  {
    vendor: 'Coc Coc',
    agents: { coccoc: 'search', 'coccocbot-web': 'search' },
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
    agents: { Owler: 'search' },
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
    agents: { ShapBot: 'search' },
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
    agents: { Devin: 'assistant' },
  },
]
