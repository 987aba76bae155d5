/** Who sent a request of an access log: an agent, a person, whom an assistant may have sent, or another program. */
import type { OtherKind } from '../../db/contract/store.ts'
import { detectAgent, type DetectedAgent } from '../../sdk/agents/detect-agent.ts'
import { cutChars } from '../text/text.ts'
import { limits } from '../limits.ts'
import type { LogRequest } from './log-request.ts'
import type { PlainLine } from './plain-line.ts'

/** Names of an agent, `person`, or `program` for another program. */
export type Visitor = DetectedAgent | 'person' | 'program'

export interface Visitors {
  of(userAgent: string): Visitor
  /** The agent on a line, or what the line counts as; null when only its whole request can tell. */
  on(line: PlainLine): DetectedAgent | OtherKind | null
}

const textsMax = 10_000
/** Longer ones are rare, and would cost much memory. */
const textCharsMax = 2_000

/** Reads user agents and referrers; logs repeat a few thousand of them. */
export function visitors(): Visitors {
  const visitorOf = textCache(visitorNamed)
  const isAssistant = textCache((host) => assistantAt(host) !== null)
  const isAssetEnding = textCache((ending) => assets.test(ending))
  const mayBeReferred = (line: PlainLine): boolean => {
    const { text, referrerStart, referrerEnd } = line
    if (referrerEnd - referrerStart > 1) {
      const start = hostStart(text, referrerStart)
      if (start < 0 || isAssistant.at(text, start, hostEnd(text, start, referrerEnd))) return true
    }
    return line.hasPairs && text.slice(line.pathStart, line.pathEnd).includes(sourceParameter)
  }
  return {
    of: visitorOf.of,
    on(line) {
      const { text, agentStart, agentEnd } = line
      const isNamed = agentEnd - agentStart > 1 || text[agentStart] !== '-'
      const visitor = isNamed ? visitorOf.at(text, agentStart, agentEnd) : visitorOf.of('')
      if (visitor === 'program') return 'bot'
      if (visitor !== 'person') return visitor
      const ending = endingStart(text, line.pathStart, line.pageEnd)
      if (ending >= 0 && isAssetEnding.at(text, ending, line.pageEnd)) return 'asset'
      return mayBeReferred(line) ? null : 'person'
    },
  }
}

function visitorNamed(userAgent: string): Visitor {
  const name = storable(userAgent, limits.userAgentCharsMax)
  return detectAgent(name) ?? (isPerson(userAgent) ? 'person' : 'program')
}

interface TextCache<T> {
  of(text: string): T
  /** Of a part of a text. */
  at(text: string, start: number, end: number): T
}

const slotsMask = 1_023
const sampledEvery = 5

/**
 * Remembers what texts mean. A part of a larger text that was met before is found by a few of its characters and then
 * compared as a whole, which costs a quarter of making it a text and finding that in a map.
 */
function textCache<T>(meaning: (text: string) => T): TextCache<T> {
  const meaningByText = new Map<string, T>()
  const slots: ({ text: string; means: T } | undefined)[] = Array.from({ length: slotsMask + 1 })
  const findMeaning = (text: string): T => {
    if (text.length > textCharsMax) return meaning(text)
    const cachedMeaning = meaningByText.get(text)
    if (cachedMeaning !== undefined) return cachedMeaning
    if (meaningByText.size >= textsMax) meaningByText.clear()
    const means = meaning(text)
    meaningByText.set(copyOf(text), means)
    return means
  }
  return {
    of: findMeaning,
    at(text, start, end) {
      let sum = end - start
      for (let index = start; index < end; index += sampledEvery)
        sum = (Math.imul(sum, 31) + text.charCodeAt(index)) | 0
      const slot = (sum ^ (sum >>> 16)) & slotsMask
      const cachedSlot = slots[slot]
      if (
        cachedSlot !== undefined &&
        cachedSlot.text.length === end - start &&
        text.startsWith(cachedSlot.text, start)
      )
        return cachedSlot.means
      const part = text.slice(start, end)
      const means = findMeaning(part)
      if (part.length <= textCharsMax) slots[slot] = { text: copyOf(part), means }
      return means
    },
  }
}

/** A part of a block would hold all of it. */
const copyOf = (text: string): string => Buffer.from(text).toString()

/** Browsers begin so, and crawlers that are no agents name themselves behind it. CUBOT makes telephones. */
function isPerson(userAgent: string): boolean {
  return /^(?:Mozilla|Opera)\//.test(userAgent) && !otherPrograms.test(userAgent.replace(device, ';'))
}

/** Android writes the name of a device, which may be `M bot 60`. */
const device = /;[^;()]{1,100} Build\//

const otherPrograms =
  /(?<!cu)bot(?![a-z])|crawl|spider|slurp|https?:|headless|monitor|uptime|preview|scan|lighthouse|archiver|fetch/i

const assetEndings =
  'avif bmp css cur eot gif ico jpe jpeg jpg js json map mjs mp3 mp4 ogg otf png svg ttf wasm wav webm webmanifest ' +
  'webp woff woff2'
const assets = new RegExp(`\\.(?:${assetEndings.replaceAll(' ', '|')})$`, 'i')
const endingCharsMax = 'webmanifest'.length

export function isAsset(path: string | null): boolean {
  return path !== null && assets.test(pageOf(path))
}

/** Where the dot of a name's ending is, -1 without one that an asset may have. */
function endingStart(text: string, start: number, end: number): number {
  const firstIndex = Math.max(start, end - endingCharsMax - 1)
  for (let index = end - 1; index >= firstIndex; index--) {
    const code = text.charCodeAt(index)
    if (code === dot) return index
    if (code === slash) return -1
  }
  return -1
}

const dot = 46
const slash = 47

export function pageOf(path: string): string {
  const end = path.search(/[?#]/)
  return end < 0 ? path : path.slice(0, end)
}

/** NUL and unpaired surrogates cannot be stored. */
export function storable(value: string, charsMax: number): string {
  const wellFormed = value.isWellFormed() ? value : value.toWellFormed()
  return cutChars(wellFormed.includes('\0') ? wellFormed.replaceAll('\0', '\ufffd') : wellFormed, charsMax)
}

export interface Assistant {
  vendor: string
  name: string
}

/**
 * Hosts of each, and the names of Android apps; a subdomain counts too. The first label of a host is also a
 * `utm_source`, and so is the host.
 */
const assistants: [vendor: string, name: string, hosts: string[], sources?: string[]][] = [
  ['OpenAI', 'ChatGPT', ['chatgpt.com', 'chat.openai.com', 'com.openai.chatgpt'], ['openai']],
  ['Anthropic', 'Claude', ['claude.ai', 'claude.com', 'com.anthropic.claude']],
  ['Perplexity', 'Perplexity', ['perplexity.ai', 'ai.perplexity.app.android']],
  ['Google', 'Gemini', ['gemini.google.com', 'bard.google.com']],
  ['Google', 'NotebookLM', ['notebooklm.google.com']],
  ['Microsoft', 'Copilot', ['copilot.microsoft.com', 'copilot.com', 'copilot.cloud.microsoft']],
  ['Mistral AI', 'Le Chat', ['chat.mistral.ai'], ['mistral']],
  ['DeepSeek', 'DeepSeek', ['chat.deepseek.com', 'deepseek.com']],
  ['xAI', 'Grok', ['grok.com', 'x.ai']],
  ['Meta', 'Meta AI', ['meta.ai'], ['meta-ai']],
  ['You.com', 'You.com', ['you.com'], ['you.com']],
  ['Phind', 'Phind', ['phind.com']],
  ['Quora', 'Poe', ['poe.com'], ['poe.com']],
  ['DuckDuckGo', 'Duck.ai', ['duck.ai'], ['duck.ai']],
  ['Kagi', 'Kagi Assistant', ['assistant.kagi.com'], ['kagi-assistant']],
  ['Alibaba', 'Qwen', ['chat.qwen.ai', 'qwen.ai'], ['qwen']],
  ['Moonshot AI', 'Kimi', ['kimi.com', 'kimi.moonshot.cn']],
  ['ByteDance', 'Doubao', ['doubao.com']],
  ['Proton', 'Lumo', ['lumo.proton.me']],
  ['Manus', 'Manus', ['manus.im']],
]

/** Labels that are everyday words, and say nothing as a `utm_source`. */
const plainLabels = new Set(['chat', 'you', 'poe', 'x', 'duck', 'meta', 'assistant', 'com', 'ai'])

const byHost = new Map<string, Assistant>()
const bySource = new Map<string, Assistant>()
for (const [vendor, name, hosts, sources = []] of assistants) {
  const assistant = { vendor, name }
  for (const host of hosts) {
    byHost.set(host, assistant)
    bySource.set(host, assistant)
    const label = host.split('.')[0]!
    if (!plainLabels.has(label)) bySource.set(label, assistant)
  }
  for (const source of sources) bySource.set(source, assistant)
}

/** The assistant that sent a person here; null for any other request. */
export function assistantOf({ referrer, path }: LogRequest): Assistant | null {
  const host = referrer === null ? undefined : /^(?:https?|android-app):\/\/([^/?#:]+)/i.exec(referrer)?.[1]
  const assistant = host === undefined ? null : assistantAt(host)
  if (assistant !== null) return assistant
  if (path === null || !path.includes(sourceParameter)) return null
  const source = new URLSearchParams(path.slice(path.indexOf('?') + 1)).get('utm_source')
  return bySource.get((source ?? '').toLowerCase().replace(/^www\./, '')) ?? null
}

const sourceParameter = 'utm_source='

function assistantAt(host: string): Assistant | null {
  let name = host.toLowerCase()
  while (name !== '') {
    const assistant = byHost.get(name)
    if (assistant !== undefined) return assistant
    name = name.slice(name.indexOf('.') + 1 || name.length)
  }
  return null
}

/** -1 for other URLs than those of nearly all referrers. */
function hostStart(text: string, offset: number): number {
  if (text.startsWith('https://', offset)) return offset + 8
  return text.startsWith('http://', offset) ? offset + 7 : -1
}

/** Where the host of a URL ends. */
function hostEnd(text: string, start: number, end: number): number {
  for (let index = start; index < end; index++) {
    const code = text.charCodeAt(index)
    if (code === slash || code === question || code === hash || code === colon) return index
  }
  return end
}

const question = 63
const hash = 35
const colon = 58
