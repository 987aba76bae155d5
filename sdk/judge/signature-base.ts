/** Builds the signature base of RFC 9421: the text that a signature of an HTTP message signs. */
import {
  type InnerList,
  type Item,
  type Parameters,
  parseDictionary,
  parseItem,
  parseList,
  serializeBytes,
  serializeDictionary,
  serializeMember,
  serializeParameters,
} from './structured-fields.ts'

/** `request.headers`, Node's `req.headers`, or pairs, which keep repeated headers apart. */
export type MessageFields =
  | { get(name: string): string | null }
  | { [name: string]: string | string[] | undefined }
  | (readonly [name: string, value: string])[]

/** A request, or a response with a status. */
export interface HttpMessage {
  method?: string | undefined
  /** The absolute URL that the client requested, unchanged: the path is not decoded, the query not sorted. */
  url?: string | undefined
  /** The target of the request line, if it is neither the path and query nor `url`: `*`, or host and port. */
  requestTarget?: string | undefined
  status?: number | undefined
  headers: MessageFields
  trailers?: MessageFields | undefined
  /** The request that a response answers, for components with `req`. */
  request?: HttpMessage | undefined
}

/** The message has no such component, or none that could be signed. The message says why, for people. */
export class ComponentError extends Error {}

export interface Component {
  name: string
  parameters: Parameters
}

const componentsMax = 32
const baseCharsMax = 65_536

/** The covered components of a member of Signature-Input: names in lower case, each only once. */
export function componentsOf(covered: InnerList): Component[] {
  if (covered.items.length > componentsMax)
    throw new ComponentError(`more than ${componentsMax} components are covered`)
  const identities = new Set<string>()
  return covered.items.map(({ value, parameters }) => {
    if (value.type !== 'string') throw new ComponentError('a covered component is not a string')
    if (!/^@?[a-z0-9!#$%&'*+\-.^_`|~]+$/.test(value.value))
      throw new ComponentError('the name of a covered component is not a header in lower case')
    const identity = [value.value, ...[...parameters.entries()].map(parameterText).sort()].join(';')
    if (identities.has(identity)) throw new ComponentError('a component is covered twice')
    identities.add(identity)
    return { name: value.value, parameters }
  })
}

const parameterText = ([name, value]: [string, Item['value']]): string =>
  serializeParameters(new Map([[name, value]]))

/** Throws a `ComponentError` when a covered component is missing, ambiguous or cannot be signed. */
export function signatureBase(message: HttpMessage, covered: InnerList): string {
  let base = ''
  for (const component of componentsOf(covered)) {
    const value = componentValue(message, component)
    // A line break would let a value imitate another component.
    if (/[^\x20-\x7e\t]/.test(value))
      throw new ComponentError(`${component.name} has a character that cannot be signed`)
    base += `"${component.name}"${serializeParameters(component.parameters)}: ${value}\n`
    if (base.length > baseCharsMax)
      throw new ComponentError(`the covered components are longer than ${baseCharsMax} characters`)
  }
  return `${base}"@signature-params": ${serializeMember(covered)}`
}

function componentValue(message: HttpMessage, { name, parameters }: Component): string {
  for (const [parameter, { value }] of parameters) {
    const knownParameters = name.startsWith('@') ? derivedParameters : fieldParameters
    const isKnown = knownParameters.includes(parameter) || (parameter === 'name' && name === '@query-param')
    const isText = parameter === 'key' || parameter === 'name'
    if (!isKnown || (isText ? typeof value !== 'string' : value !== true))
      throw new ComponentError(`${name} has a parameter that is unknown: ${parameter}`)
  }
  let source = message
  if (parameters.has('req')) {
    if (message.status === undefined || message.request === undefined)
      throw new ComponentError('components with req need a response to a known request')
    source = message.request
  }
  return name.startsWith('@') ? derivedValue(source, name, parameters) : fieldValue(source, name, parameters)
}

const derivedParameters = ['req']
const fieldParameters = ['sf', 'key', 'bs', 'req', 'tr']

function fieldValue(message: HttpMessage, name: string, parameters: Parameters): string {
  const fields = parameters.has('tr') ? message.trailers : message.headers
  const lines = fields === undefined ? [] : fieldLines(fields, name)
  if (lines.length === 0) throw new ComponentError(`the header ${name} is missing`)
  const key = parameters.get('key')?.value
  if (parameters.has('bs')) {
    if (key !== undefined || parameters.has('sf'))
      throw new ComponentError('bs cannot be combined with sf or key')
    return lines.map((line) => serializeBytes(latin1(line))).join(', ')
  }
  const text = lines.join(', ')
  if (text.length > baseCharsMax)
    throw new ComponentError(`the header ${name} is longer than ${baseCharsMax} characters`)
  if (key !== undefined) {
    const member = parseDictionary(text).get(String(key))
    if (member === undefined) throw new ComponentError(`the header ${name} has no member ${key}`)
    return serializeMember(member)
  }
  return parameters.has('sf') ? strictValue(name, text) : text
}

/** The values of a header as they were sent, without the white space around them; folded lines become one. */
export function fieldLines(fields: MessageFields, name: string): string[] {
  return rawLines(fields, name).map((line) => {
    if (!line.includes('\n')) return trimmed(line)
    const [first = '', ...folded] = line.split(/\r?\n/)
    // A line break that no white space follows is no fold; it stays, and cannot be signed.
    const add = (text: string, next: string): string =>
      isBlank(next[0]) ? `${trimmed(text)} ${trimmed(next)}` : `${text}\n${next}`
    return trimmed(folded.reduce(add, first))
  })
}

const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t'

/** Not by a pattern: one that is anchored at the end takes quadratic time for many spaces. */
function trimmed(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isBlank(text[start])) start++
  while (end > start && isBlank(text[end - 1])) end--
  return text.slice(start, end)
}

function rawLines(fields: MessageFields, name: string): string[] {
  if (Array.isArray(fields))
    return fields.filter(([fieldName]) => fieldName.toLowerCase() === name).map(([, value]) => value)
  if (isFetchStyle(fields)) {
    const value = fields.get(name)
    return value === null ? [] : [value]
  }
  const keys = Object.hasOwn(fields, name)
    ? [name]
    : Object.keys(fields).filter((fieldName) => fieldName.toLowerCase() === name)
  return keys.flatMap((key) => fields[key] ?? [])
}

function isFetchStyle(fields: MessageFields): fields is { get(name: string): string | null } {
  return 'get' in fields && typeof fields.get === 'function'
}

function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => {
    const code = character.charCodeAt(0)
    if (code > 0xff) throw new ComponentError('a header has a character that is not a byte')
    return code
  })
}

/** The types of headers, for `sf`. The strict form of any other header is unknown, so it cannot be verified. */
const structuredFields: { [name: string]: 'dictionary' | 'list' | 'item' } = {
  'accept-ch': 'list',
  'cache-status': 'list',
  'cdn-cache-control': 'dictionary',
  'client-cert': 'item',
  'client-cert-chain': 'list',
  'content-digest': 'dictionary',
  'content-usage': 'dictionary',
  'example-dict': 'dictionary', // the RFC's own example
  'permissions-policy': 'dictionary',
  priority: 'dictionary',
  'proxy-status': 'list',
  'repr-digest': 'dictionary',
  signature: 'dictionary',
  'signature-agent': 'dictionary',
  'signature-input': 'dictionary',
  'want-content-digest': 'dictionary',
  'want-repr-digest': 'dictionary',
}

function strictValue(name: string, text: string): string {
  switch (Object.hasOwn(structuredFields, name) ? structuredFields[name] : undefined) {
    case 'dictionary':
      return serializeDictionary(parseDictionary(text))
    case 'list':
      return parseList(text).map(serializeMember).join(', ')
    case 'item':
      return serializeMember(parseItem(text))
    default:
      throw new ComponentError(`the header ${name} is not known as a structured field`)
  }
}

function derivedValue(message: HttpMessage, name: string, parameters: Parameters): string {
  if (name === '@status') return statusOf(message)
  if (message.status !== undefined) throw new ComponentError(`a response has no ${name} without req`)
  switch (name) {
    case '@method':
      return present(message.method, name)
    case '@target-uri':
      return present(message.url, name).replace(/#.*$/, '')
    case '@authority':
      return targetOf(message).authority
    case '@scheme':
      return targetOf(message).scheme
    case '@request-target': {
      const { path, query } = targetOf(message)
      return message.requestTarget ?? path + query
    }
    case '@path':
      return targetOf(message).path
    case '@query':
      return targetOf(message).query || '?'
    case '@query-param':
      return queryParameter(targetOf(message).query, parameters.get('name')?.value)
    default:
      throw new ComponentError(`${name} is not a component of a request`)
  }
}

function present(value: string | undefined, name: string): string {
  if (value === undefined || value === '') throw new ComponentError(`the request has no ${name}`)
  return value
}

function statusOf({ status }: HttpMessage): string {
  if (status === undefined || !/^[1-9]\d\d$/.test(String(status)))
    throw new ComponentError('only a response has @status')
  return String(status)
}

export interface Target {
  scheme: string
  /** Host in lower case, with the port unless it is the default of the scheme. */
  authority: string
  path: string
  /** With the question mark; empty without a query. */
  query: string
}

const urlText =
  /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([A-Za-z0-9\-._~!$&'()*+,;=%]+|\[[0-9A-Fa-f:.]+\])(?::(\d*))?([/?#].*)?$/

/** Not the `URL` class, which decodes and rewrites what was signed. */
export function targetOf({ url }: Pick<HttpMessage, 'url'>): Target {
  const [, scheme = '', host = '', port = '', pathAndQuery = ''] = urlText.exec(present(url, 'URL')) ?? []
  if (host === '') throw new ComponentError('the URL of the request is not absolute')
  const [, path = '', query = ''] = /^([^?#]*)(\?[^#]*)?/.exec(pathAndQuery) ?? []
  const lower = scheme.toLowerCase()
  const isDefault = port === '' || port === { http: '80', https: '443', ws: '80', wss: '443' }[lower]
  const authority = host.toLowerCase() + (isDefault ? '' : `:${port}`)
  return { scheme: lower, authority, path: path || '/', query }
}

/** The value of the only parameter of this name, encoded as a form encodes it but with %20 for a space. */
function queryParameter(query: string, name: unknown): string {
  if (typeof name !== 'string') throw new ComponentError('@query-param has no name')
  const values = [...new URLSearchParams(query)].filter(
    ([parameterName]) => formEncoded(parameterName) === name,
  )
  const [only, second] = values
  if (only === undefined) throw new ComponentError(`the query has no parameter ${name}`)
  if (second !== undefined) throw new ComponentError(`the query has the parameter ${name} more than once`)
  return formEncoded(only[1])
}

function formEncoded(text: string): string {
  let encoded = ''
  for (const byte of new TextEncoder().encode(text)) {
    const character = String.fromCharCode(byte)
    encoded += /[A-Za-z0-9*\-._]/.test(character)
      ? character
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return encoded
}
