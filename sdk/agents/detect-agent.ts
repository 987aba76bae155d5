/** `detectAgent`: recognizes AI and search agents by the user agent, which is a claim and not a proof. */
import { type RequestHeaders, userAgentOf } from '../client/visitor-session.ts'
import { listVersion, operators, type Purpose, reportedName } from './agent-list.ts'
import { rareSearchEngines } from './rare-search-engines.ts'

/** The `agent` field of an event: `session.trace({ type: 'agent.detected', agent: detectAgent(request) })`. */
export interface DetectedAgent {
  class: 'crawler'
  /** Always `detected`, because anybody can send any user agent. */
  trust: 'detected'
  vendor: string
  /** The agent's name, such as GPTBot. */
  name: string
  purpose: Purpose
  userAgent: string
  detectionVersion: string
  [field: string]: unknown
}

/** A user agent, or a Fetch, Node.js or Express request. */
export type AgentSource = string | { headers: RequestHeaders }

/**
 * The agent that the `user-agent` header names. Null for people, unknown agents and requests without the header.
 *
 * Trace it in the visitor's session: `client.session(request).trace({ type: 'agent.detected', agent })`.
 */
export function detectAgent(source: AgentSource | null | undefined): DetectedAgent | null {
  if (source === null || source === undefined) return null
  const userAgent = userAgentOf(typeof source === 'string' ? { 'user-agent': source } : source.headers)
  if (userAgent === '') return null
  const { agents, anyText } = (index ??= createIndex())
  let bestMatch: KnownAgent | null = null
  let devices: Comment[] | null = null
  for (const match of userAgent.matchAll(anyText)) {
    const agent = agentAt(match, agents)
    // A user agent may contain several names; the longest one is the most specific.
    const isLonger = agent !== null && (bestMatch === null || agent.name.length >= bestMatch.name.length)
    if (!isLonger || isLikeness(match)) continue
    if (!isDeviceName(match, () => (devices ??= deviceComments(userAgent)))) bestMatch = agent
  }
  if (bestMatch === null) return null
  return { class: 'crawler', trust: 'detected', ...bestMatch, userAgent, detectionVersion: listVersion }
}

interface KnownAgent {
  vendor: string
  name: string
  purpose: Purpose
}

const textOf = (entry: string): string => entry.replace(/=.*/, '').toLowerCase()

/** Names that a variant may extend: `GPTBot-Video` is OpenAI's, but `Yeti-Phone` need not be Naver's. */
const extendable = /bot|spider|crawl|agent|fetcher|other|user|-ai$/

/**
 * The agent that a match names. `Name-Variant` of a known name is a variant: it has the vendor and purpose of the known
 * agent, and its own name as written, because the addresses that an operator publishes for one agent must not
 * contradict another one. `Name-1.2` is a version.
 */
function agentAt(match: RegExpExecArray, agents: Map<string, KnownAgent>): KnownAgent | null {
  const text = match[0]
  const ending = match[2]
  const agent = agents.get((match[1] ?? text).toLowerCase()) ?? null
  if (agent === null || ending === undefined || !/^-[a-z]/i.test(ending)) return agent
  return { ...agent, name: agent.name + ending }
}

/** Whether a program says that it is like an agent: `Feedly/1.0 (like FeedFetcher-Google)`. */
function isLikeness({ index, input }: RegExpExecArray): boolean {
  return (
    input[index - 1] === ' ' && /\b(?:like|following) $/i.test(input.slice(Math.max(0, index - 11), index))
  )
}

interface Comment {
  start: number
  end: number
}

const mayHaveDevice = /Android|Windows Phone|Tizen|\((?:Mobile|Tablet);|dpi;|FBAN\//
const deviceComment = /\bAndroid\b|\bWindows Phone\b|\bTizen\b|^(?:Mobile|Tablet);|\ddpi;|^FBAN\/|;FBAN\//

/** The outermost comments that describe a person's phone, without their brackets. */
function deviceComments(userAgent: string): Comment[] {
  if (!mayHaveDevice.test(userAgent)) return []
  const comments: Comment[] = []
  let depth = 0
  let start = 0
  for (let offset = 0; offset < userAgent.length; offset++) {
    const char = userAgent[offset]!
    if (char === '(' || char === '[') {
      if (depth === 0) start = offset + 1
      depth++
    } else if ((char === ')' || char === ']') && depth > 0) {
      depth--
      if (depth === 0) comments.push({ start, end: offset })
    }
  }
  if (depth > 0) comments.push({ start, end: userAgent.length })
  return comments.filter((comment) => deviceComment.test(userAgent.slice(comment.start, comment.end)))
}

/**
 * Whether a name is part of a comment about a phone, whose model and carrier can have any name: `(Linux; Android 14;
 * Devin Build/UP1A)`. A product of its own is an agent there too: `(Linux; Android 8.0; Pixel 2; Storebot-Google/1.0)`,
 * as is one that is declared `compatible;`.
 */
function isDeviceName({ 0: text, index, input }: RegExpExecArray, readDevices: () => Comment[]): boolean {
  // Agents usually stand behind one of these, and then the comments need not be read.
  if (index === 0 || /compatible; ?$/i.test(input.slice(Math.max(0, index - 12), index))) return false
  const nameEnd = text.endsWith('/') ? index + text.length - 1 : index + text.length
  const isSegment = /[;([] ?$/.test(input.slice(Math.max(0, index - 2), index))
  if (isSegment && /^\/\d[\w.]*(?:[;)\]]|$)/.test(input.slice(nameEnd, nameEnd + 20))) return false
  return readDevices().some(({ start, end }) => start <= index && index < end)
}

interface Index {
  /** By the lower-case text in the user agent. */
  agents: Map<string, KnownAgent>
  /** Matches texts as `Operator.agents` has them, and the ending of a variant. Longer texts come first. */
  anyText: RegExp
}

/** Made for the first user agent, because a program may load this module and never detect an agent. */
let index: Index | null = null

function createIndex(): Index {
  const agents = new Map<string, KnownAgent>(
    [...operators, ...rareSearchEngines].flatMap(({ vendor, agents: entries }) =>
      Object.entries(entries).map(([entry, purpose]): [string, KnownAgent] => {
        return [textOf(entry), { vendor, name: reportedName(entry), purpose }]
      }),
    ),
  )
  const texts = [...agents.keys()]
  const hosts = texts.filter((text) => isHost.test(text))
  const paths = texts.filter((text) => text.startsWith('/'))
  const names = texts.filter((text) => !isHost.test(text) && !text.startsWith('/'))
  const starts = names.filter((text) => /[/-]$/.test(text))
  const words = names.filter((text) => !/[/-]$/.test(text))
  const openWords = words.filter((text) => extendable.test(text))
  const plainWords = words.filter((text) => !extendable.test(text))
  const ending = '-[0-9][0-9a-z.]*|-[a-z][0-9a-z_-]{0,39}'
  const isOver = '(?![^\\s/;:,)\\]"\'+])'
  const namePattern = `(${anyOf(openWords)})(${ending})?${isOver}|(?:${anyOf(plainWords)})${isOver}|${anyOf(starts)}`
  const standing = `(?<![^\\s;:,("'[+])(?:${namePattern})`
  const addressed = `(?:${anyOf(hosts)})(?![0-9a-z-])`
  // The first check fails inside of a word, which is most of a user agent.
  return { agents, anyText: new RegExp(`(?<![0-9a-z-])(?:${standing}|${addressed})|${anyOf(paths)}`, 'gi') }
}

/** Crawlers without a name of their own are recognized by the address in their user agent. */
const isHost = /^[^ /]+\.[a-z]{2,}.*[^-]$/

/** An expression for the longest of the texts. Shared first letters make it quicker than a plain list. */
function anyOf(texts: string[]): string {
  const endings = new Map<string, string[]>()
  for (const text of [...texts].sort((left, right) => right.length - left.length)) {
    const letter = text.slice(0, 1)
    endings.set(letter, [...(endings.get(letter) ?? []), escaped(text.slice(1))])
  }
  return [...endings].map(([letter, group]) => `${escaped(letter)}(?:${group.join('|')})`).join('|')
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
