/** JSON as it was sent: formatted and coloured, compared with another version, and its text with all digits. */
import type { ComponentChildren } from 'preact'
import './json.css'
import { CopyButton } from './copy.tsx'
import { counted } from '../text/format.ts'
import { Text, escapeHidden } from './text.tsx'
import type { Difference, Json } from '../api/registry-api.ts'

interface JsonViewProps {
  json: string // numbers keep every digit that was sent
  title: string
  label: string
  children?: ComponentChildren // more buttons
}

export function JsonView({ json, title, label, children }: JsonViewProps) {
  return (
    <section class="json-view">
      <header>
        <h3>{title}</h3>
        <CopyButton text={() => prettyJson(json)} label="Copy JSON" />
        {children}
      </header>
      <pre tabIndex={0} role="group" aria-label={label}>
        {prettyTokens(json).map((part) =>
          part.kind === 'space' ? part.text : <span class={part.kind}>{part.text}</span>,
        )}
      </pre>
    </section>
  )
}

const shownMax = 30
const charsMax = 600

/** "/inputSchema/properties/q" → "inputSchema › properties › q" */
export function pathLabel(pointer: string): string {
  if (pointer === '') return 'whole document'
  return pointer
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .join(' › ')
}

/** The differences between two versions of pushed JSON, path by path, old beside new. */
export function Differences({ list }: { list: Difference[] }) {
  if (list.length === 0) return null
  return (
    <>
      <dl class="differences">
        {list.slice(0, shownMax).map((difference) => (
          <div key={difference.path}>
            <dt>
              <span class={`change-word ${difference.change}`}>{difference.change}</span>{' '}
              <Text value={pathLabel(difference.path)} max={120} mono />
            </dt>
            {difference.change !== 'added' && (
              <Side name="before" has={'before' in difference} value={difference.before} />
            )}
            {difference.change !== 'removed' && (
              <Side name="after" has={'after' in difference} value={difference.after} />
            )}
          </div>
        ))}
      </dl>
      {list.length > shownMax && <p class="muted">{counted(list.length - shownMax, 'more change')}.</p>}
    </>
  )
}

function Side(props: { name: 'before' | 'after'; has: boolean; value: Json | undefined }) {
  const { name, has, value } = props
  return (
    <dd class={name}>
      <span class="visually-hidden">{name}: </span>
      {has ? <Value value={value ?? null} /> : <span class="muted">too long to show</span>}
    </dd>
  )
}

function Value({ value }: { value: Json }) {
  if (typeof value === 'string') return <Text value={value.slice(0, charsMax)} multiline />
  return <code>{escapeHidden(JSON.stringify(value, null, 1)).slice(0, charsMax)}</code>
}

/** A token of JSON text. Numbers keep every digit that was sent, where JSON.parse would round them. */
interface JsonToken {
  kind: 'key' | 'string' | 'number' | 'literal' | 'mark' | 'space'
  text: string
}

const token = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[{}[\],:]|\s+/gsy

/** The tokens of a JSON text without white space. Throws if the text is not JSON. */
function* scan(json: string): Generator<string> {
  token.lastIndex = 0
  let from = 0
  while (from < json.length) {
    token.lastIndex = from
    const match = token.exec(json)
    if (match === null) throw new SyntaxError(`Not JSON at character ${from}.`)
    from += match[0].length
    if (match[0].trim() !== '') yield match[0]
  }
}

/** The unchanged text of one field of a JSON object, or null. The last duplicate wins, as in JSON.parse. */
export function fieldText(json: string, name: string): string | null {
  let depth = 0
  let key: string | null = null
  let value: string[] | null = null
  let fieldValue: string | null = null
  for (const text of scan(json)) {
    const opens = text === '{' || text === '['
    const closes = text === '}' || text === ']'
    if (closes) depth -= 1
    const ends = (closes && depth === 0) || (text === ',' && depth === 1)
    if (ends && value !== null) {
      fieldValue = value.join('')
      value = null
    }
    if (ends) key = null
    else if (value !== null) value.push(text)
    else if (depth === 1 && text === ':' && key === name) value = []
    else if (depth === 1 && text.startsWith('"')) key = JSON.parse(text) as string
    if (opens) depth += 1
  }
  return fieldValue
}

function kindOf(text: string): JsonToken['kind'] {
  if (text.startsWith('"')) return 'string'
  if (/^[-\d]/.test(text)) return 'number'
  if (/^[tfn]/.test(text)) return 'literal'
  return 'mark'
}

/** The tokens of a JSON text with line breaks and two-space indents. Hidden characters in strings are escaped. */
export function prettyTokens(json: string): JsonToken[] {
  const laid: JsonToken[] = []
  let depth = 0
  let previous = ''
  const space = (text: string): void => void laid.push({ kind: 'space', text })
  for (const text of scan(json)) {
    const empties = (previous === '{' && text === '}') || (previous === '[' && text === ']')
    if (text === '}' || text === ']') depth -= 1
    const breaks =
      text === '}' || text === ']' ? !empties : previous === '{' || previous === '[' || previous === ','
    if (breaks) space(`\n${'  '.repeat(depth)}`)
    else if (previous === ':') space(' ')
    const last = laid.at(-1)
    if (text === ':' && last?.kind === 'string') last.kind = 'key'
    laid.push({ kind: kindOf(text), text: text.startsWith('"') ? escapeHidden(text) : text })
    if (text === '{' || text === '[') depth += 1
    previous = text
  }
  return laid
}

/** A JSON text, formatted. */
export function prettyJson(json: string): string {
  return prettyTokens(json)
    .map((part) => part.text)
    .join('')
}
