/**
 * Who is behind an agent's name, without asking anybody: the client package's own list of crawlers (`operators.json` is
 * that list, held equal by `tests/e2e/pages-agents.test.ts`), and the agents that work in a browser or call tools.
 */
import crawlers from './operators.json'

export type Purpose = 'training' | 'search' | 'assistant'

export interface KnownAgent {
  operator: string
  purposes: Purpose[]
  source: string // documentation of the operator, or of a third party
  agents: { name: string; purpose: Purpose }[] // empty if the name is the agent's own
}

interface Operator {
  vendor: string
  source: string
  agents: { [name: string]: Purpose | undefined }
}

/** Operators of agents that act for a person. */
const assistants: { name: string; operator: string; source: string }[] = [
  { name: 'Operator', operator: 'OpenAI', source: 'https://openai.com/index/introducing-operator/' },
  { name: 'ChatGPT', operator: 'OpenAI', source: 'https://platform.openai.com/docs/bots' },
  { name: 'Claude', operator: 'Anthropic', source: 'https://support.anthropic.com/en/articles/8896518' },
  {
    name: 'Claude in Chrome',
    operator: 'Anthropic',
    source: 'https://www.anthropic.com/news/claude-for-chrome',
  },
  {
    name: 'Claude Computer Use',
    operator: 'Anthropic',
    source: 'https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/computer-use-tool',
  },
  { name: 'Gemini', operator: 'Google', source: 'https://gemini.google.com/' },
  {
    name: 'Gemini Computer Use',
    operator: 'Google',
    source: 'https://ai.google.dev/gemini-api/docs/computer-use',
  },
  {
    name: 'Google-Agent',
    operator: 'Google',
    source: 'https://developers.google.com/search/docs/crawling-indexing/overview-google-crawlers',
  },
  { name: 'Comet', operator: 'Perplexity', source: 'https://www.perplexity.ai/comet' },
  { name: 'GitHub Copilot', operator: 'GitHub', source: 'https://docs.github.com/en/copilot' },
  { name: 'Le Chat', operator: 'Mistral AI', source: 'https://docs.mistral.ai/robots' },
  { name: 'Browser Use', operator: 'Browser Use', source: 'https://github.com/browser-use/browser-use' },
  { name: 'Nova Act', operator: 'Amazon', source: 'https://github.com/aws/nova-act' },
  { name: 'Skyvern', operator: 'Skyvern', source: 'https://github.com/Skyvern-AI/skyvern' },
  { name: 'UI-TARS', operator: 'ByteDance', source: 'https://github.com/bytedance/UI-TARS' },
]

function ofOperator({ vendor, source, agents }: Operator): KnownAgent {
  const named = Object.entries(agents).flatMap(([name, purpose]) => (purpose ? [{ name, purpose }] : []))
  return { operator: vendor, source, agents: named, purposes: [...new Set(named.map((one) => one.purpose))] }
}

/** Finds operators and agents by name, ignoring case. */
const known = new Map<string, KnownAgent>()
for (const operator of crawlers as Operator[]) {
  const all = ofOperator(operator)
  for (const { name, purpose } of all.agents) {
    known.set(name.toLowerCase(), { ...all, purposes: [purpose], agents: [] })
  }
  known.set(operator.vendor.toLowerCase(), all)
}
for (const { name, operator, source } of assistants) {
  if (known.has(name.toLowerCase())) continue
  known.set(name.toLowerCase(), { operator, source, purposes: ['assistant'], agents: [] })
}

export function knownAgent(vendor: string): KnownAgent | null {
  return known.get(vendor.trim().toLowerCase()) ?? null
}

export const purposeWords: { [purpose in Purpose]: string } = {
  training: 'collects text to train models',
  search: 'builds a search index',
  assistant: 'fetches pages at the request of a person',
}
