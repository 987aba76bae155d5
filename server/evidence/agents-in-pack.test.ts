/** The bundled evidence and the list of agents name the same agents: neither can change without the other. */
import { expect, test } from 'bun:test'
import { listVersion, operators, reportedName } from '../../sdk/agents/agent-list.ts'
import { rareSearchEngines } from '../../sdk/agents/rare-search-engines.ts'
import { detectAgent } from '../../sdk/agents/detect-agent.ts'
import { bundledEvidence } from './evidence.ts'

const { pack } = await bundledEvidence()
const entries = [...pack.lists, ...pack.hosts]
const products = entries.flatMap(({ list, operator, products: listProducts }) =>
  Object.keys(listProducts).map((product): [string, string, string] => [list, operator, product]),
)
const listedNames = new Map<string, Set<string>>()
for (const { vendor, agents } of [...operators, ...rareSearchEngines]) {
  const names = listedNames.get(vendor) ?? new Set()
  for (const entry of Object.keys(agents)) names.add(reportedName(entry))
  listedNames.set(vendor, names)
}

test.each(products)('%s: %s is detected as the operator of %s', (_, operator, product) => {
  // A list for `*` covers all agents of its operator.
  if (product === '*') return expect(listedNames.get(operator)?.size ?? 0).toBeGreaterThan(0)
  const forms = [product, `${product}/1.0`, `Mozilla/5.0 (compatible; ${product}/2.1; +https://bot.example)`]
  for (const userAgent of forms)
    expect(detectAgent(userAgent), userAgent).toMatchObject({ vendor: operator, name: product })
})

/**
 * Agents for which nothing is published, of operators who publish where others come from. A new agent of such an
 * operator belongs here or in the pack: without a list its claims cannot be checked. Google's list of common crawlers
 * also covers the two variants of GoogleOther; the next signed pack can name them.
 */
const withoutPublishedSources: { [operator: string]: string[] } = {
  OpenAI: ['ChatGPT-Atlas'],
  Anthropic: ['anthropic-ai', 'Claude-Web', 'Claude-Code'],
  Google: [
    'Gemini-Deep-Research',
    'GoogleOther-Image',
    'GoogleOther-Video',
    'GoogleAgent-Mariner',
    'GoogleAgent-URLContext',
    'Google-Gemini-CLI',
    'Google-Firebase',
  ],
  Microsoft: ['AzureAI-SearchBot', 'officestorebot', 'msrbot'],
  Perplexity: ['Comet'],
  Apple: ['Applebot-Extended'],
  Amazon: [
    'KendraBot',
    'AmazonProductDiscovery',
    'AmazonSellerInitiatedListing',
    'NovaAct',
    'amazon-kendra',
    'amazon-QBusiness',
    'AmazonBuyForMe',
    'bedrockbot',
    'Amazon-Bedrock-AgentCore-Browser',
  ],
  'Mistral AI': ['MistralAI-Training'],
  DuckDuckGo: ['DuckDuckGo-Favicons-Bot'],
  Parallel: ['Shap-User'],
}

test('every agent whose operator publishes its sources is in the pack', () => {
  const missing: { [operator: string]: string[] } = {}
  for (const { vendor, agents } of operators) {
    const published = products.filter(([, operator]) => operator === vendor).map(([, , product]) => product)
    if (published.length === 0 || published.includes('*')) continue
    const names = [...new Set(Object.keys(agents).map(reportedName))]
    const missingNames = names.filter((name) => !published.includes(name))
    if (missingNames.length > 0) missing[vendor] = missingNames
  }
  expect(missing).toEqual(withoutPublishedSources)
})

test('the product tokens of the pack are those of the list, or of an older one', () => {
  for (const { operator, seen: seenDate, tokens } of pack.tokens) {
    const names = [...(listedNames.get(operator) ?? [])]
    expect(names, operator).toEqual(expect.arrayContaining(tokens))
    const current = operators.find(({ vendor }) => vendor === operator)!
    const currentNames = [...new Set(Object.keys(current.agents).map(reportedName))]
    if (seenDate === listVersion) expect(tokens).toEqual(currentNames)
    else expect(seenDate < listVersion, `the tokens of ${operator} are newer than the list`).toBe(true)
  }
})
