/** Parses a robots.txt and says which of its rules applies to a request (RFC 9309). */

/** RFC 9309 §2.5 asks for at least 500 KiB. Lines beyond are not read. */
export const robotsBytesMax = 500 * 1024

interface RobotsRule {
  allow: boolean
  line: number // from 1
  octets: number // of the encoded pattern: the longest match wins
  pieces: string[] // literal texts between the wildcards
  isAnchored: boolean // the pattern ends with `$`
}

interface RobotsGroup {
  products: Set<string> // in lower case
  rules: RobotsRule[]
}

/**
 * A line that is no rule of RFC 9309 but means something to people: shown, and never judged by. `unmatched` is a
 * `User-agent` that names no crawler.
 */
export interface RobotsNote {
  line: number
  kind: 'content-usage' | 'crawl-delay' | 'sitemap' | 'unmatched' | 'ignored'
  products: string[] // the first of its group; [] outside of groups
  text: string // the value, or the whole line when it is ignored
}

interface RobotsFile {
  groups: RobotsGroup[]
  rules: number
  notes: RobotsNote[] // at most `notesMax`
  ignored: number // lines that are no record, or rules outside of any group
  unmatched: number // User-agent lines that name no crawler, such as `User-agent: GPTBot, CCBot`
  isCut: boolean // longer than `robotsBytesMax`
}

interface RobotsVerdict {
  allowed: boolean
  line: number | null // of the rule; null when no rule matches
}

const recordNames =
  'user-agent|allow|disallow|sitemap|crawl-delay|request-rate|visit-time|cache-delay|noindex|nofollow|host|clean-param|content-[a-z]+'
const record = new RegExp(`^(?:${recordNames})[ \\t]*:`, 'i')

/**
 * Whether a file is meant for crawlers: text, of which at least half the lines are records. Another file that took the
 * name is no rule, and must not be shown to people.
 */
export function looksLikeRobots(text: string): boolean {
  if (/[\u0000-\u0008\u000e-\u001f]/.test(text)) return false
  const start = text.startsWith('\ufeff') ? 1 : 0
  const lines = text
    .slice(start)
    .split(/\r\n|\r|\n/)
    .map((line) => line.replace(/#.*/, '').trim())
  const contents = lines.filter((line) => line !== '')
  return contents.filter((line) => record.test(line)).length * 2 >= contents.length
}

const notesMax = 1_000
const noteCharsMax = 500
const noteProductsMax = 20

/** `text` is decoded UTF-8. Any text can be parsed: lines that mean nothing are counted. */
export function parseRobots(text: string): RobotsFile {
  const { kept: robotsText, isCut } = firstBytes(text.startsWith('\ufeff') ? text.slice(1) : text)
  const file: RobotsFile = { groups: [], rules: 0, notes: [], ignored: 0, unmatched: 0, isCut }
  let group: RobotsGroup | null = null
  let isNaming = false // the last rule or user-agent line was a user-agent line
  const note = (line: number, kind: RobotsNote['kind'], value: string): void => {
    if (kind === 'ignored') file.ignored++
    if (kind === 'unmatched') file.unmatched++
    if (file.notes.length >= notesMax) return
    const products = kind === 'sitemap' ? [] : [...(group?.products ?? [])].slice(0, noteProductsMax)
    file.notes.push({ line, kind, products, text: value.slice(0, noteCharsMax) })
  }
  for (const [index, whole] of robotsText.split(/\r\n|\r|\n/).entries()) {
    const line = index + 1
    const content = (whole.includes('#') ? whole.slice(0, whole.indexOf('#')) : whole).trim()
    if (content === '') continue
    const colon = content.indexOf(':')
    const name = content.slice(0, Math.max(0, colon)).trim().toLowerCase()
    const value = content.slice(colon + 1).trim()
    if (name === 'user-agent') {
      if (!isNaming || group === null) file.groups.push((group = { products: new Set(), rules: [] }))
      isNaming = true
      if (value === '') note(line, 'ignored', content)
      else group.products.add(productOf(value))
      if (namesNobody(value)) note(line, 'unmatched', value)
    } else if (name === 'allow' || name === 'disallow') {
      isNaming = false
      const rule = value === '' ? null : ruleOf(value, name === 'allow', line)
      if (rule !== null && group !== null) {
        group.rules.push(rule)
        file.rules++
      } else if (value !== '' || group === null) note(line, 'ignored', content)
      // §2.2.4: other records must not interfere with groups, so they leave `isNaming` as it is.
    } else if (name === 'content-usage' || name === 'crawl-delay' || name === 'sitemap') {
      note(line, name, value)
    } else note(line, 'ignored', content)
  }
  return file
}

/** Whole lines of the first bytes. */
function firstBytes(text: string): { kept: string; isCut: boolean } {
  if (text.length * 3 <= robotsBytesMax || Buffer.byteLength(text) <= robotsBytesMax)
    return { kept: text, isCut: false }
  const start = Buffer.from(text).subarray(0, robotsBytesMax).toString()
  return { kept: start.slice(0, Math.max(start.lastIndexOf('\n'), start.lastIndexOf('\r')) + 1), isCut: true }
}

/** A version behind the token, as in `GPTBot/1.2`, does not belong to it. */
function productOf(value: string): string {
  const slash = value.indexOf('/')
  return (slash < 0 ? value : value.slice(0, slash)).trim().toLowerCase()
}

/**
 * Whether a user-agent line is no token of one crawler (§2.2.1): several names on one line, or a part of a name with a
 * wildcard. Spaces and digits are no part of a token either, but crawlers have them in their names.
 */
const namesNobody = (value: string): boolean => /[,;|]/.test(value) || /.\*|\*./.test(value)

/** Null for a pattern that can match no path. */
function ruleOf(pattern: string, allow: boolean, line: number): RobotsRule | null {
  if (!/^[/*]/.test(pattern)) return null
  const isAnchored = pattern.endsWith('$')
  const encoded = comparable(isAnchored ? pattern.slice(0, -1) : pattern, true)
  const octets = encoded.length + (isAnchored ? 1 : 0)
  return { allow, line, octets, pieces: encoded.replaceAll(/\*+/g, '*').split('*'), isAnchored }
}

const unreserved = /[A-Za-z0-9._~-]/
const toEncode = /%[0-9a-fA-F]{2}|[^\x21-\x7e]|["<>\\^`{|}$*]/gu

/**
 * The form in which octets are compared (§2.2.2, §2.2.3): unreserved octets plain, all others that RFC 3986 does not
 * allow or that are special in patterns percent-encoded in upper case. In a query `:` and `/` mean the same encoded or
 * not, as the table of §2.2.2 has them.
 */
function comparable(text: string, isPattern: boolean): string {
  const query = text.indexOf('?')
  return text.toWellFormed().replaceAll(toEncode, (sequence: string, offset: number) => {
    if (sequence === '*') return isPattern ? '*' : '%2A'
    if (sequence === '$') return '%24'
    if (sequence.length !== 3 || !sequence.startsWith('%')) return encodeURIComponent(sequence)
    const char = String.fromCharCode(Number.parseInt(sequence.slice(1), 16))
    const isPlain = unreserved.test(char) || (query >= 0 && offset > query && (char === ':' || char === '/'))
    return isPlain ? char : sequence.toUpperCase()
  })
}

export type JudgeRobots = (tokens: readonly string[], target: string) => RobotsVerdict

const productsMax = 1_000

/**
 * Judges requests by a file. `tokens` are those that a crawler obeys (`robotsTokens`): the first one with a group
 * counts. `target` is a path with or without its query.
 */
export function robotsJudge(file: RobotsFile): JudgeRobots {
  const rulesByTokens = new Map<string, readonly RobotsRule[]>()
  return (tokens, target) => {
    if (/^\/robots\.txt(?:\?|$)/.test(target)) return { allowed: true, line: null } // §2.2.2
    const key = tokens.join('\n')
    let rules = rulesByTokens.get(key)
    if (rules === undefined) {
      if (rulesByTokens.size >= productsMax) rulesByTokens.clear()
      rulesByTokens.set(key, (rules = rulesFor(file, tokens)))
    }
    const path = comparable(target, false)
    const rule = rules.find((candidate) => matches(candidate, path))
    return rule === undefined ? { allowed: true, line: null } : { allowed: rule.allow, line: rule.line }
  }
}

/** The rules of all groups of a token, so that the first match decides: the longest, then allow, then the first. */
function rulesFor(file: RobotsFile, tokens: readonly string[]): RobotsRule[] {
  for (const product of tokens.map(productOf)) {
    const groups = file.groups.filter((group) => group.products.has(product))
    if (groups.length === 0) continue
    return groups
      .flatMap((group) => group.rules)
      .sort((a, b) => b.octets - a.octets || Number(b.allow) - Number(a.allow) || a.line - b.line)
  }
  return []
}

/**
 * Each piece is searched behind the one before it, and the first place is as good as any later one. So the time is
 * that of searching the path once per piece, whatever the pattern.
 */
function matches({ pieces, isAnchored }: RobotsRule, path: string): boolean {
  const last = pieces.length - 1
  if (!path.startsWith(pieces[0]!)) return false
  let position = pieces[0]!.length
  if (last === 0) return !isAnchored || position === path.length
  for (let index = 1; index < last; index++) {
    const pieceIndex = path.indexOf(pieces[index]!, position)
    if (pieceIndex < 0) return false
    position = pieceIndex + pieces[index]!.length
  }
  const tail = pieces[last]!
  if (isAnchored) return path.length - tail.length >= position && path.endsWith(tail)
  return path.includes(tail, position)
}
