/** Parses and serializes structured fields of HTTP (RFC 9651), the form of the headers of a message signature. */

export type BareItem =
  | { type: 'integer' | 'decimal' | 'date'; value: number }
  | { type: 'string' | 'token' | 'display'; value: string }
  | { type: 'bytes'; value: Uint8Array<ArrayBuffer> }
  | { type: 'boolean'; value: boolean }

export type Parameters = Map<string, BareItem>

export interface Item {
  value: BareItem
  parameters: Parameters
}

export interface InnerList {
  items: Item[]
  parameters: Parameters
}

export type Member = Item | InnerList
export type Dictionary = Map<string, Member>

/** The text is not a structured field. The message says why, for people. */
export class FieldError extends Error {}

/** The text and how far it is read. */
interface Reader {
  text: string
  at: number
}

export function parseDictionary(text: string): Dictionary {
  const reader = readerOf(text)
  const members: Dictionary = new Map()
  readSeparated(reader, () => {
    const key = readKey(reader)
    // A key that appears again replaces the member, as the RFC demands.
    if (take(reader, '=')) members.set(key, readMember(reader))
    else members.set(key, { value: { type: 'boolean', value: true }, parameters: readParameters(reader) })
  })
  return members
}

export function parseList(text: string): Member[] {
  const reader = readerOf(text)
  const members: Member[] = []
  readSeparated(reader, () => members.push(readMember(reader)))
  return members
}

export function parseItem(text: string): Item {
  const reader = readerOf(text)
  const item = readItem(reader)
  skip(reader, spaces)
  if (reader.at < text.length) throw new FieldError('there is text after the item')
  return item
}

export function isInnerList(member: Member): member is InnerList {
  return 'items' in member
}

function readerOf(text: string): Reader {
  const reader = { text, at: 0 }
  skip(reader, spaces)
  return reader
}

const spaces = / */y
const blanks = /[ \t]*/y
const keyText = /[a-z*][a-z0-9_\-.*]*/y
const numberText = /(-?)(\d+)(?:(\.)(\d*))?/y
const stringText = /"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"/y
const tokenText = /[A-Za-z*][!#$%&'*+\-.^_`|~0-9A-Za-z:/]*/y
const bytesText = /:([A-Za-z0-9+/=]*):/y
const booleanText = /\?([01])/y
const displayText = /%"((?:[\x20\x21\x23\x24\x26-\x7e]|%[0-9a-f]{2})*)"/y

/** What the pattern matches here; the reader is behind it afterwards. */
function match(reader: Reader, pattern: RegExp, name: string): RegExpExecArray {
  pattern.lastIndex = reader.at
  const result = pattern.exec(reader.text)
  if (result === null) throw new FieldError(`there is no ${name} at character ${reader.at + 1}`)
  reader.at = pattern.lastIndex
  return result
}

function skip(reader: Reader, pattern: RegExp): void {
  pattern.lastIndex = reader.at
  pattern.test(reader.text)
  reader.at = pattern.lastIndex
}

function take(reader: Reader, character: string): boolean {
  if (reader.text[reader.at] !== character) return false
  reader.at++
  return true
}

/** Members with commas between them, up to the end of the text. */
function readSeparated(reader: Reader, readOne: () => void): void {
  if (reader.at >= reader.text.length) return
  for (;;) {
    readOne()
    skip(reader, blanks)
    if (reader.at >= reader.text.length) return
    if (!take(reader, ',')) throw new FieldError(`there is no comma at character ${reader.at + 1}`)
    skip(reader, blanks)
  }
}

function readMember(reader: Reader): Member {
  return reader.text[reader.at] === '(' ? readInnerList(reader) : readItem(reader)
}

function readInnerList(reader: Reader): InnerList {
  reader.at++
  const items: Item[] = []
  for (;;) {
    skip(reader, spaces)
    if (take(reader, ')')) return { items, parameters: readParameters(reader) }
    items.push(readItem(reader))
    const next = reader.text[reader.at]
    if (next !== ' ' && next !== ')') throw new FieldError('a list in parentheses is not closed')
  }
}

function readItem(reader: Reader): Item {
  const value = readBareItem(reader)
  return { value, parameters: readParameters(reader) }
}

function readParameters(reader: Reader): Parameters {
  const parameters: Parameters = new Map()
  while (take(reader, ';')) {
    skip(reader, spaces)
    const key = readKey(reader)
    parameters.set(key, take(reader, '=') ? readBareItem(reader) : { type: 'boolean', value: true })
  }
  return parameters
}

function readKey(reader: Reader): string {
  return match(reader, keyText, 'key')[0]
}

function readBareItem(reader: Reader): BareItem {
  const first = reader.text[reader.at] ?? ''
  if (first === '"') {
    const inner = match(reader, stringText, 'string')[1] ?? ''
    return { type: 'string', value: inner.includes('\\') ? inner.replace(/\\(.)/g, '$1') : inner }
  }
  if (first === ':') {
    return { type: 'bytes', value: bytesOf(match(reader, bytesText, 'byte sequence')[1] ?? '') }
  }
  if (first === '?') return { type: 'boolean', value: match(reader, booleanText, 'boolean')[1] === '1' }
  if (first === '@') return readDate(reader)
  if (first === '%') {
    return { type: 'display', value: displayOf(match(reader, displayText, 'display string')[1] ?? '') }
  }
  if (/[-0-9]/.test(first)) return readNumber(reader)
  return { type: 'token', value: match(reader, tokenText, 'value')[0] }
}

function readNumber(reader: Reader): BareItem & { value: number } {
  const [text, , whole = '', point, fraction = ''] = match(reader, numberText, 'number')
  if (point === undefined) {
    if (whole.length > 15) throw new FieldError('an integer has more than 15 digits')
    return { type: 'integer', value: Number(text) }
  }
  if (whole.length > 12) throw new FieldError('a decimal has more than 12 digits before the point')
  if (fraction.length < 1 || fraction.length > 3)
    throw new FieldError('a decimal must have 1 to 3 digits after the point')
  return { type: 'decimal', value: Number(text) }
}

function readDate(reader: Reader): BareItem {
  reader.at++
  const { type, value } = readNumber(reader)
  if (type !== 'integer') throw new FieldError('a date is not an integer')
  return { type: 'date', value }
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  } catch {
    throw new FieldError('a byte sequence is not base64')
  }
}

function displayOf(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    throw new FieldError('a display string is not UTF-8')
  }
}

export function serializeDictionary(members: Dictionary): string {
  return [...members]
    .map(([key, member]) =>
      !isInnerList(member) && member.value.value === true
        ? key + serializeParameters(member.parameters)
        : `${key}=${serializeMember(member)}`,
    )
    .join(', ')
}

export function serializeMember(member: Member): string {
  if (!isInnerList(member)) return serializeBareItem(member.value) + serializeParameters(member.parameters)
  return `(${member.items.map(serializeMember).join(' ')})${serializeParameters(member.parameters)}`
}

export function serializeParameters(parameters: Parameters): string {
  let text = ''
  for (const [key, item] of parameters)
    text += item.value === true ? `;${key}` : `;${key}=${serializeBareItem(item)}`
  return text
}

function serializeBareItem(item: BareItem): string {
  switch (item.type) {
    case 'integer':
      return String(item.value)
    case 'decimal':
      return item.value.toFixed(3).replace(/(\.\d+?)0+$/, '$1')
    case 'date':
      return `@${item.value}`
    case 'string':
      return `"${item.value.replace(/[\\"]/g, '\\$&')}"`
    case 'token':
      return item.value
    case 'boolean':
      return item.value ? '?1' : '?0'
    case 'bytes':
      return serializeBytes(item.value)
    case 'display':
      return `%"${displayEncoded(item.value)}"`
  }
}

export function serializeBytes(bytes: Uint8Array): string {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return `:${btoa(binary)}:`
}

function displayEncoded(text: string): string {
  let encoded = ''
  for (const byte of new TextEncoder().encode(text)) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25 && byte !== 0x22
    encoded += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).padStart(2, '0')}`
  }
  return encoded
}
