/**
 * The evidence pack: what operators publish to prove who their agents are, as one JSON file. Checks its form, so that
 * a pack from anywhere can be read.
 */
import { parseNetwork, type Network } from './networks.ts'

/** `user`: fetches that a person triggers. They may come from the person's device, so no address contradicts them. */
export type ProductKind = 'crawler' | 'user'

/** Products by their names in `detectAgent`. `*` is every product of the operator. */
export interface Products {
  [name: string]: ProductKind
}

/** Where a fact comes from. */
export interface Origin {
  operator: string // as `vendor` of `detectAgent`
  source: string // address of the publication
  seen: string // the day on which it was last read there, YYYY-MM-DD
  digest: string // SHA-256 of the facts as compact JSON, hex
}

/** Addresses from which an operator's agents come. */
export interface AddressList extends Origin {
  list: string // unique name, such as gptbot
  products: Products
  published: string // the day that the operator names, YYYY-MM-DD
  networks: string[] // CIDR
}

/** Names of the hosts of an operator, for addresses whose name resolves back to them. */
export interface HostNames extends Origin {
  list: string
  products: Products
  /** `*.example.com` is any host below; elsewhere `*` is letters and digits. */
  hostNames: string[]
}

/** Keys with which an operator signs requests (Web Bot Auth). */
export interface KeyDirectory extends Origin {
  url: string
  keys: { [field: string]: unknown }[] // JSON Web Keys
}

/** The names of an operator's agents in robots.txt (RFC 9309). */
export interface ProductTokens extends Origin {
  tokens: string[]
}

export interface EvidencePack {
  format: typeof packFormat
  made: string // ISO 8601
  lists: AddressList[]
  hosts: HostNames[]
  directories: KeyDirectory[]
  tokens: ProductTokens[]
}

export const packFormat = 'sightglass-evidence-1'

export const packLimits = {
  bytesMax: 8 * 1024 * 1024,
  networksMax: 1_000_000,
  entriesMax: 1_000, // of each kind
  namesMax: 1_000, // products, host names, tokens or keys of an entry
  keyBytesMax: 4_096,
  nameCharsMax: 100,
  sourceCharsMax: 2_000,
}

/** What is wrong with a pack, at which of its fields. */
export class PackError extends Error {
  override readonly name = 'PackError'
}

type Fields = { readonly [field: string]: unknown }

/** The pack in a parsed JSON document, without fields that this release does not know. Throws a `PackError`. */
export function readPack(document: unknown): EvidencePack {
  const pack = fieldsOf(document, 'the pack')
  if (pack['format'] !== packFormat) throw new PackError(`format must be "${packFormat}"`)
  const lists = entries(pack, 'lists', readList)
  const hosts = entries(pack, 'hosts', readHosts)
  let networks = 0
  const names = new Set<string>()
  for (const { list } of [...lists, ...hosts]) {
    if (names.has(list)) throw new PackError(`two lists have the name ${list}`)
    names.add(list)
  }
  for (const list of lists) networks += list.networks.length
  if (networks > packLimits.networksMax)
    throw new PackError(`has ${networks} networks, at most ${packLimits.networksMax} are allowed`)
  return {
    format: packFormat,
    made: time(pack['made'], 'made'),
    lists,
    hosts,
    directories: entries(pack, 'directories', readDirectory),
    tokens: entries(pack, 'tokens', (entry, path) => ({
      ...readOrigin(entry, path),
      tokens: texts(entry['tokens'], `${path}.tokens`),
    })),
  }
}

function entries<T>(pack: Fields, name: string, read: (entry: Fields, path: string) => T): T[] {
  const values = pack[name] ?? []
  if (!Array.isArray(values)) throw new PackError(`${name} must be a list`)
  if (values.length > packLimits.entriesMax)
    throw new PackError(`${name} must have at most ${packLimits.entriesMax} entries`)
  return values.map((value, index) => read(fieldsOf(value, `${name}[${index}]`), `${name}[${index}]`))
}

function readOrigin(entry: Fields, path: string): Origin {
  return {
    operator: text(entry['operator'], `${path}.operator`),
    source: text(entry['source'], `${path}.source`, packLimits.sourceCharsMax),
    seen: day(entry['seen'], `${path}.seen`),
    digest: hash(entry['digest'], `${path}.digest`),
  }
}

function readList(entry: Fields, path: string): AddressList {
  const networks = list(entry['networks'], `${path}.networks`, packLimits.networksMax)
  networks.forEach((network, index) => networkOf(network, `${path}.networks[${index}]`))
  return {
    list: text(entry['list'], `${path}.list`),
    ...readOrigin(entry, path),
    products: readProducts(entry['products'], `${path}.products`),
    published: day(entry['published'], `${path}.published`),
    networks: networks as string[],
  }
}

/** A network of a list. Throws a `PackError`. */
export function networkOf(value: unknown, path: string): Network {
  const network = typeof value === 'string' ? parseNetwork(value) : 'must be a string'
  if (typeof network === 'string') throw new PackError(`${path} ${network}`)
  return network
}

const hostNameForm = /^(?:\*\.)?(?:[a-z0-9*-]{1,63}\.)+[a-z]{2,63}$/

function readHosts(entry: Fields, path: string): HostNames {
  const hostNames = texts(entry['hostNames'], `${path}.hostNames`)
  for (const name of hostNames) {
    if (!hostNameForm.test(name) || /\*\*/.test(name))
      throw new PackError(
        `${path}.hostNames: "${name.slice(0, 50)}" is not a host name such as *.crawl.example.com`,
      )
  }
  return {
    list: text(entry['list'], `${path}.list`),
    ...readOrigin(entry, path),
    products: readProducts(entry['products'], `${path}.products`),
    hostNames,
  }
}

function readDirectory(entry: Fields, path: string): KeyDirectory {
  const keys = list(entry['keys'], `${path}.keys`, packLimits.namesMax).map((key, index) => {
    const fields = fieldsOf(key, `${path}.keys[${index}]`)
    if (JSON.stringify(fields).length > packLimits.keyBytesMax)
      throw new PackError(`${path}.keys[${index}] must have at most ${packLimits.keyBytesMax} characters`)
    if ('d' in fields) throw new PackError(`${path}.keys[${index}] is a private key`)
    return fields
  })
  return {
    ...readOrigin(entry, path),
    url: text(entry['url'], `${path}.url`, packLimits.sourceCharsMax),
    keys,
  }
}

function readProducts(value: unknown, path: string): Products {
  const products = Object.entries(fieldsOf(value, path))
  if (products.length > packLimits.namesMax)
    throw new PackError(`${path} must have at most ${packLimits.namesMax} products`)
  for (const [name, kind] of products) {
    text(name, path)
    if (kind !== 'crawler' && kind !== 'user')
      throw new PackError(`${path}: the kind of ${name} must be crawler or user`)
  }
  return Object.fromEntries(products) as Products
}

function fieldsOf(value: unknown, path: string): { [field: string]: unknown } {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new PackError(`${path} must be an object`)
  return value as { [field: string]: unknown }
}

function list(value: unknown, path: string, max: number): unknown[] {
  if (!Array.isArray(value)) throw new PackError(`${path} must be a list`)
  if (value.length > max) throw new PackError(`${path} must have at most ${max} entries`)
  return value
}

function texts(value: unknown, path: string): string[] {
  return list(value, path, packLimits.namesMax).map((item, index) => text(item, `${path}[${index}]`, 253))
}

const unprintable = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/

function text(value: unknown, path: string, charsMax = packLimits.nameCharsMax): string {
  if (typeof value !== 'string' || value === '' || value.length > charsMax || unprintable.test(value))
    throw new PackError(`${path} must be a string of 1 to ${charsMax} printable characters`)
  return value
}

function hash(value: unknown, path: string): string {
  if (typeof value !== 'string' || !/^[0-9a-f]{64}$/.test(value))
    throw new PackError(`${path} must be a SHA-256 digest in hex`)
  return value
}

function day(value: unknown, path: string): string {
  if (typeof value !== 'string' || !/^\d{4}-\d{2}-\d{2}$/.test(value) || Number.isNaN(Date.parse(value)))
    throw new PackError(`${path} must be a day such as 2026-08-20`)
  return value
}

function time(value: unknown, path: string): string {
  if (
    typeof value !== 'string' ||
    value.length > 40 ||
    !/^\d{4}-.*Z$/.test(value) ||
    Number.isNaN(Date.parse(value))
  )
    throw new PackError(`${path} must be a time such as 2026-08-20T12:00:00.000Z`)
  return value
}
