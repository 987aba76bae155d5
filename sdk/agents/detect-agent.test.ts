/** Agent detection against the samples of the package that the names come from. */
import { expect, test } from 'bun:test'
import crawlers from 'crawler-user-agents'
import fc from 'fast-check'
import { quickestMs } from '../../tests/support/quickest.ts'
import { operators, reportedName } from './agent-list.ts'
import { agentSources } from './agent-sources.ts'
import { detectAgent } from './detect-agent.ts'
import { rareSearchEngines } from './rare-search-engines.ts'

/** The types of the package omit the tags. */
const list: { pattern: string; instances?: string[]; tags?: string[] }[] = crawlers
const samples = crawlers.flatMap(({ instances = [] }) => instances)
const names = operators.flatMap(({ vendor, agents }) =>
  Object.entries(agents).map(([entry, purpose]): [string, string, string, string] => {
    return [entry.replace(/=.*/, ''), reportedName(entry), vendor, purpose]
  }),
)

test('about forty operators, each with a source, no agent twice', () => {
  expect(operators.length).toBeGreaterThanOrEqual(40)
  expect(Object.keys(agentSources).toSorted()).toEqual(operators.map(({ vendor }) => vendor).toSorted())
  for (const source of Object.values(agentSources)) expect(new URL(source).protocol).toMatch(/^https?:$/)
  const allOperators = [...operators, ...rareSearchEngines]
  const texts = allOperators.flatMap(({ agents }) =>
    Object.keys(agents).map((entry) => entry.split('=')[0]!.toLowerCase()),
  )
  expect(new Set(texts).size).toBe(texts.length)
})

/** Documented user agents without a sample in `crawler-user-agents` 1.60. */
const browserLike =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'
const ownSamples = [
  'Mozilla/5.0 (compatible; GrokBot/1.0; +https://x.ai)',
  'xAI-Grok/1.0 (+https://grok.com)',
  'Grok-DeepSearch/1.0 (+https://x.ai)',
  `${browserLike} Agent-NovaAct/0.9`,
  `${browserLike} Comet/142.1`,
  `${browserLike} ChatGPT-Atlas/1.2`,
  `${browserLike} (compatible; ChatGPT Atlas)`,
  'MSRBOT (http://research.microsoft.com/research/sv/msrbot/)',
  'Mozilla/5.0 (compatible; YandexFuture/1.0; +http://yandex.com/bots)',
  'AISearchBot/1.0',
  'Crawl4AI/0.7',
  compatible('MistralAI-Index/1.0; +https://docs.mistral.ai/robots'),
  compatible('MistralAI-Training/1.0; +https://docs.mistral.ai/robots'),
  compatible('Kimi-User/1.0'),
  compatible('OAI-AdsBot/1.0; +https://openai.com/adsbot'),
  'ChatGPT connectors',
  'GoogleOther-Image/1.0',
  'GoogleOther-Video/1.0',
  compatible('CloudVertexBot'),
  compatible('NotebookLM'),
  'GoogleAgent-URLContext',
  'Google-Firebase',
  compatible('Applebot-Extended/0.1'),
  compatible('Ai2Bot-Dolma'),
  'amazon-kendra',
  'amazon-QBusiness',
  'bedrockbot',
  'LAIONDownloader',
  'omgilibot/0.4',
  'Webzio-Extended',
  'YiyanBot',
  'Shap-User/1.0',
  'YandexAdditional',
  'YandexAdditionalBot',
  'TongyiBot',
  'ExaSearchBot/1.0',
  'AI2Bot-DeepResearchEval',
  'Querit-SearchBot',
  'QueritBot',
  'Andibot',
  'Mozilla-Tabstack',
  'KlaviyoAIBot',
  'AIWebIndex',
  'Stripebot/1.0',
  'Adyen HttpClient 1.0',
]

function compatible(product: string): string {
  return `Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ${product})`
}

test.each(names)('%s is found in a real user agent as %s of %s, for %s', (text, name, vendor, purpose) => {
  const holding = [...samples, ...ownSamples].filter((sample) =>
    sample.toLowerCase().includes(text.toLowerCase()),
  )
  const matches = holding.map(detectAgent).filter((agent) => agent?.name.toLowerCase() === name.toLowerCase())
  expect(matches.length).toBeGreaterThan(0)
  expect(matches[0]).toMatchObject({ class: 'crawler', trust: 'detected', vendor, purpose })
})

const listed = list.filter(({ tags = [] }) => tags.some((tag) => /^(ai-crawler|search-engine)$/.test(tag)))

test('recognizes every sample of every AI crawler and search engine in the package', () => {
  expect(listed.filter(({ tags = [] }) => tags.includes('ai-crawler')).length).toBe(75)
  expect(listed.filter(({ tags = [] }) => tags.includes('search-engine')).length).toBe(196)
  const missed = listed.flatMap(({ pattern, instances = [] }) => {
    const plain = pattern.replace(/\\/g, '').replace('^', '')
    return (instances.length > 0 ? instances : [`${plain}/1.0`]).filter(
      (instance) => detectAgent(instance) === null,
    )
  })
  expect(missed).toEqual([])
})

test.each([
  ['Claude-User (claude-code/2.1.86; +https://support.anthropic.com/)', 'Claude-Code'],
  [
    'Mozilla/5.0 (compatible; Google-Agent; +https://developers.google.com/crawling) Chrome/142.0.0.0',
    'Google-Agent',
  ],
  ['Mozilla/5.0 (compatible; Manus-User/1.0; +https://manus.im)', 'Manus-User'],
  [`${browserLike} Agent-NovaAct/0.9`, 'NovaAct'],
  ['Mozilla/5.0 (compatible; GrokBot/1.0)', 'GrokBot'],
  [`${browserLike} ChatGPT-Atlas/1.2`, 'ChatGPT-Atlas'],
  [`${browserLike} Comet/142.1`, 'Comet'],
  ['ChatGPT-User/1.0', 'ChatGPT-User'],
  ['OAI-SearchBot/1.0', 'OAI-SearchBot'],
])('%s is %s', (userAgent, name) => {
  expect(detectAgent(userAgent)?.name).toBe(name)
})

test('the result is a valid agent field of an event', () => {
  const userAgent =
    'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)'
  expect(detectAgent(userAgent)).toEqual({
    class: 'crawler',
    trust: 'detected',
    vendor: 'OpenAI',
    name: 'GPTBot',
    purpose: 'training',
    userAgent,
    detectionVersion: '2026-11-29',
  })
})

test.each([
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148 Safari/604.1',
  'curl/8.5.0',
  'Yetisports/1.0',
  'my-gptbot-clone',
  // A word is an agent where it stands as a product of its own.
  'monitor/1.0 (+https://shop.example/blog/gptbot)',
  'monitor/1.0 (+https://gptbot.example/)',
  'Mozilla/5.0 (compatible; acapbot/0.1; treat like Googlebot)',
  'Mozilla/5.0 (Linux; Android 14; Devin) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Mobile Safari/537.36',
  'Mozilla/5.0 (Linux; Android 14; Devin Build/UP1A) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36',
  `${browserLike} Devin`,
  `${browserLike} Operator/1.0`,
  `${browserLike} Atlas/1.0`,
  `${browserLike} CometBrowser/1.0`,
  `${browserLike} Halley_Comet/1.0`,
  'Yeti-Phone/1.0',
  'Slurp-Browser/1.0',
  'notgptbot/1.0',
  // Browsers of companies that also crawl, and apps that show pages.
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) coc_coc_browser/120.0 Chrome/114.0 Safari/537.36',
  'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 YaBrowser/24.10.0 Yowser/2.5 Safari/537.36',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) AppleWebKit/605.1.15 Version/17.6 YandexSearch/24.10 YaApp_iOS/24.10 Mobile/15E148 Safari/604.1',
  'Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Mobile Safari/537.36 DuckDuckGo/5 Ddg/17',
  'Mozilla/5.0 (Linux; Android 13; HUAWEI) AppleWebKit/537.36 Chrome/114.0 HuaweiBrowser/15.0 Mobile Safari/537.36',
  'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/116.0 Safari/537.36 SE 2.X MetaSr 1.0 SogouMobileBrowser/6.5',
  'Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36 NAVER(inapp; search; 2000; 12.8.1)',
  'Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36 DaumApps/8.0 DaumDevice/mobile',
  'Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36 baiduboxapp/13.60 (Baidu; P1 14)',
  'Mozilla/5.0 (Linux; Android 14; Comet) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Mobile Safari/537.36',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/86.0.4240.198 Safari/537.36 QIHU 360SE',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 [FBAN/FBIOS;FBAV/500.0]',
  'Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36 Instagram 350.0 trill_370 BytedanceWebview/d8a21c6',
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) ChatGPT/1.2025 Chrome/142.0 Electron/33 Safari/537.36',
  '',
])('%s is nobody we know', (userAgent) => {
  expect(detectAgent(userAgent)).toBeNull()
})

test('accepts every kind of request', () => {
  const userAgent = 'ClaudeBot/1.0'
  expect(detectAgent(new Request('http://x/', { headers: { 'user-agent': userAgent } }))?.vendor).toBe(
    'Anthropic',
  )
  expect(detectAgent({ headers: { 'user-agent': userAgent } })?.name).toBe('ClaudeBot')
  expect(detectAgent({ headers: {} })).toBeNull()
  expect(detectAgent(null)).toBeNull()
  expect(detectAgent(undefined)).toBeNull()
})

/** Words of agents, as vendors of phones and carriers could use them. */
const hostileWords = fc.constantFrom(
  ...[...operators, ...rareSearchEngines].flatMap(({ agents }) =>
    Object.keys(agents).map((entry) => entry.replace(/=.*/, '').replace(/[/-]$/, '')),
  ),
  'Comet',
  'Devin',
  'Operator',
  'Atlas',
  'Claude',
  'Gemini',
  'Kimi',
  'GPTBot-Pro',
  'Googlebot-Fold',
)
const modelName = fc
  .record({
    word: hostileWords,
    form: fc.constantFrom(
      '@',
      '@ 5',
      'Nova @',
      '@-5G',
      'SM-@',
      '@ Pro (2026)',
      '(2026) @',
      '@_EEA',
      '@/Nova',
    ),
  })
  .map(({ word, form }) => form.replace('@', word))
const webKit = 'AppleWebKit/537.36 (KHTML, like Gecko)'
const personForms: ((model: string) => string)[] = [
  (model) => `Mozilla/5.0 (Linux; Android 14; ${model}) ${webKit} Chrome/142.0.0.0 Mobile Safari/537.36`,
  (model) => `Mozilla/5.0 (Linux; Android 14; ${model} Build/UP1A.23; wv) ${webKit} Version/4.0 Chrome/142.0`,
  (model) => `Mozilla/5.0 (Linux; U; Android 9; en-us; ${model} Build/PKQ1) ${webKit} MiuiBrowser/14 Mobile`,
  (model) => `Mozilla/5.0 (Linux; Android 14; ${model}) ${webKit} SamsungBrowser/25.0 Chrome/121.0 Mobile`,
  (model) =>
    `Mozilla/5.0 (Linux; Android 14; ${model}) ${webKit} Chrome/142.0 Mobile Safari/537.36 EdgA/142.0`,
  (model) => `Mozilla/5.0 (Android 14; Mobile; ${model}; rv:140.0) Gecko/140.0 Firefox/140.0`,
  (model) => `Mozilla/5.0 (Mobile; ${model}; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5`,
  (model) => `Mozilla/5.0 (Windows Phone 10.0; Android 6.0.1; Microsoft; ${model}) ${webKit} Edge/15.15254`,
  (model) => `Dalvik/2.1.0 (Linux; U; Android 14; ${model} Build/UP1A)`,
  (model) => `Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Mobile/15E148 [FBAN/FBIOS;FBCR/${model};FBLC/en_US]`,
  (model) => `Instagram 350.0.0 Android (34/14; 480dpi; 1080x2400; samsung; ${model}; qcom; en_US)`,
]

test('law: people stay people, whatever their phone and carrier are called', () => {
  fc.assert(
    fc.property(modelName, fc.constantFrom(...personForms), (model, form) => {
      expect(detectAgent(form(model)), form(model)).toBeNull()
    }),
    { numRuns: 5_000 },
  )
})

test('a product of its own is an agent on a phone too', () => {
  const phone = 'Mozilla/5.0 (Linux; Android 14; Devin Build/UP1A; Storebot-Google/1.0) Chrome/142.0'
  expect(detectAgent(phone)?.name).toBe('Storebot-Google')
  const behind = 'Mozilla/5.0 (Linux; Android 14; Devin) Chrome/142.0 (compatible; GPTBot/1.0)'
  expect(detectAgent(behind)?.name).toBe('GPTBot')
  expect(detectAgent('Mozilla/5.0 (Linux; Android 14; compatible; Bytespider)')?.name).toBe('Bytespider')
})

test.each([
  ['GPTBot-Video/1.0', 'OpenAI', 'GPTBot-Video', 'training'],
  ['Mozilla/5.0 (compatible; MistralAI-User-Beta/2; +x)', 'Mistral AI', 'MistralAI-User-Beta', 'assistant'],
  ['GoogleOther-Audio', 'Google', 'GoogleOther-Audio', 'training'],
  ['gptbot-video', 'OpenAI', 'GPTBot-video', 'training'],
  ['GPTBot-1.2', 'OpenAI', 'GPTBot', 'training'],
])('%s is a variant of an agent of %s: %s', (userAgent, vendor, name, purpose) => {
  expect(detectAgent(userAgent)).toMatchObject({ vendor, name, purpose })
})

test('law: the variant of an extendable name has its vendor and purpose, and a bounded name', () => {
  const bases = names.filter(([text, name]) => /bot$|spider$|-user$/i.test(text) && text === name)
  const variants = fc.stringMatching(/^-[A-Za-z][A-Za-z0-9]{0,60}$/)
  fc.assert(
    fc.property(fc.constantFrom(...bases), variants, ([text, name, vendor, purpose], variant) => {
      const agent = detectAgent(`Mozilla/5.0 (compatible; ${text}${variant}/1.0)`)
      if (variant.length > 41) return expect(agent).toBeNull()
      fc.pre(!names.some(([otherName]) => otherName.toLowerCase() === `${text}${variant}`.toLowerCase()))
      expect(agent).toMatchObject({ vendor, purpose, name: `${name}${variant}` })
    }),
  )
})

test('the longest name wins, in any letter case', () => {
  expect(detectAgent('Googlebot-Image/1.0')?.name).toBe('Googlebot-Image')
  expect(detectAgent('compatible; GPTBOT/2')?.name).toBe('GPTBot')
})

test('law: for any header, the trust is "detected" and the user agent has at most 2,000 characters', () => {
  const piece = fc.oneof(fc.string(), fc.constantFrom(...names.map(([text]) => text), ' ', '/', '('))
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 50 }), (pieces) => {
      const agent = detectAgent(pieces.join(''))
      if (agent === null) return
      expect(agent.trust).toBe('detected')
      expect(agent.userAgent.length).toBeLessThanOrEqual(2_000)
    }),
  )
})

test('reads only the start of a very long header', async () => {
  const endless = 'Google'.repeat(1_000_000)
  const hundred = (header: string) => () => {
    for (let n = 0; n < 100; n++) detectAgent(header)
  }
  const startMs = await quickestMs(hundred(endless.slice(0, 2_000)))
  expect(await quickestMs(hundred(endless))).toBeLessThan(5 * startMs + 5)
})
