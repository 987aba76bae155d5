/** Validates a setup file: organizations with their sites, keys, endpoints and alert rules. */
import { parseTime } from '../../clock.ts'
import { limits } from '../../limits.ts'
import { UsageError } from '../../errors.ts'
import { isSlug } from '../../identity/organizations/organizations.ts'
import { hostsProblem, readHosts } from '../../identity/organizations/site-hosts.ts'
import { nameProblem } from '../../text/names.ts'
import { definitionFields } from '../../webhooks/alerts/definition.ts'
import { readRetryWaits } from '../../webhooks/endpoints/endpoint-fields.ts'
import { signingKey } from '../../webhooks/sinks/signing.ts'
import { nearest } from '../../text/text.ts'
import type { KeyKind } from '../../../db/contract/store.ts'

/** `at` is the position in the file, for messages. */
export interface Setup {
  organizations: SetupOrg[]
}

export interface SetupOrg {
  at: string
  slug: string
  name: string | null // null: unchanged; a new organization gets its slug as name
  sites: SetupSite[]
  keys: SetupKey[]
  endpoints: SetupEndpoint[]
  alerts: SetupAlert[]
}

export interface SetupSite {
  at: string
  siteId: string
  name: string | null
  hidden: boolean
  restricted: boolean
  hosts: string[] | null // null: they stay as they are
}

export interface SetupKey {
  at: string
  kind: KeyKind
  label: string
  hash: string // SHA-256 of the key in hex; the key itself is never in the file
  prefix: string // shown in lists
  siteIds: string[]
  scopes: string[]
  behindProxy: boolean
  expiresAtMs: number | null
}

/** Identified by its label in its organization. */
export interface SetupEndpoint {
  at: string
  label: string
  url: string
  types: string[]
  outcomes: string[]
  classes: string[]
  sites: string[]
  batchSize: number
  retryWaits: number[] | null // seconds; null: the server's default
  secret: string | null // null: random
}

/** Identified by its name in its organization. The rule itself is validated when it is applied. */
export interface SetupAlert {
  at: string
  name: string
  endpoint: string // its label
  definition: { [field: string]: unknown }
}

/** `where` formats a path such as `organizations[0].keys[1].hash`; `readSecret` reads the file of a secret. */
interface Reading {
  where(path: string): string
  readSecret(path: string): string
}

export function readSetup(table: unknown, reading: Reading): Setup {
  const top = readTable(table, '', reading)
  const organizations = top.tables('organizations').map((orgTable) => readOrg(orgTable, reading))
  top.done()
  unique(organizations, ({ slug }) => slug, 'organization')
  unique(
    organizations.flatMap(({ keys }) => keys),
    ({ hash }) => hash,
    'key',
  )
  return { organizations }
}

function readOrg(org: TableReader, reading: Reading): SetupOrg {
  const read = {
    at: org.at,
    slug: org.text('slug', (text) => (isSlug(text) ? null : 'must be a slug such as acme-shop')),
    name: org.textOrNull('name', nameProblem),
    sites: org.tables('sites').map(readSite),
    keys: org.tables('keys').map(readKey),
    endpoints: org.tables('endpoints').map((endpointTable) => readEndpoint(endpointTable, reading)),
    alerts: org.tables('alerts').map(readAlert),
  }
  org.done()
  unique(read.sites, ({ siteId }) => siteId, 'site')
  unique(read.endpoints, ({ label }) => label, 'endpoint')
  unique(read.alerts, ({ name }) => name, 'alert rule')
  return read
}

function readSite(site: TableReader): SetupSite {
  const read = {
    at: site.at,
    siteId: site.text('id', siteProblem),
    name: site.textOrNull('name', nameProblem),
    hidden: site.flag('hidden'),
    restricted: site.flag('restricted'),
    hosts: site.read('hosts', siteHosts),
  }
  site.done()
  return read
}

function siteHosts(value: unknown): string[] | null {
  if (value === undefined) return null
  const texts = Array.isArray(value) && value.every((text) => typeof text === 'string') ? value : null
  if (texts === null) throw new UsageError('must be a list of strings')
  const problem = hostsProblem(texts)
  if (problem !== null) throw new UsageError(problem)
  return readHosts(texts)
}

function siteProblem(text: string): string | null {
  const chars = [...text].length
  return chars >= 1 && chars <= limits.idCharsMax ? null : `must have 1 to ${limits.idCharsMax} characters`
}

const kinds: { readonly [prefix: string]: KeyKind } = { ik: 'ingest', sk: 'secret', pk: 'publishable' }

function readKey(key: TableReader): SetupKey {
  const kindText = key.text('kind', (text) =>
    Object.values(kinds).some((kind) => kind === text) ? null : 'must be ingest, secret or publishable',
  )
  const [mark, kind] = Object.entries(kinds).find(([, keyKind]) => keyKind === kindText)!
  const prefixForm = new RegExp(`^agtx_${mark}_[A-Za-z0-9_-]{8}$`)
  const read = {
    at: key.at,
    kind,
    label: key.text('label', nameProblem),
    hash: key.text('hash', (text) =>
      /^[0-9a-f]{64}$/.test(text) ? null : 'must be the SHA-256 of the key: 64 lower-case hex digits',
    ),
    prefix:
      key.textOrNull('prefix', (text) =>
        prefixForm.test(text) ? null : `must be the first 16 characters of the key: agtx_${mark}_ and 8 more`,
      ) ?? `agtx_${mark}_`,
    siteIds: key.texts('sites'),
    scopes: key.texts('scopes'),
    behindProxy: key.flag('behindProxy'),
    expiresAtMs: key.time('expires', readDay),
  }
  key.done()
  return read
}

/** A date without a time is midnight UTC. */
function readDay(text: string): number | null {
  return parseTime(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text)
}

function readEndpoint(endpoint: TableReader, { where: formatPosition, readSecret }: Reading): SetupEndpoint {
  const secretFile = endpoint.textOrNull('secretFile', () => null)
  const read = {
    at: endpoint.at,
    label: endpoint.text('label', nameProblem),
    url: endpoint.text('url', () => null),
    types: endpoint.texts('types'),
    outcomes: endpoint.texts('outcomes'),
    classes: endpoint.texts('classes'),
    sites: endpoint.texts('sites'),
    batchSize: endpoint.wholeNumber('batchSize', 1, limits.webhookBatchEventsMax),
    retryWaits: endpoint.read('retryWaits', readRetryWaits)?.map((ms) => ms / 1_000) ?? null,
    secret: secretFile === null ? null : readSecret(secretFile).trim(),
  }
  endpoint.done()
  if (read.secret !== null) {
    try {
      signingKey(read.secret)
    } catch {
      const position = formatPosition(`${endpoint.path}.secretFile`)
      throw new UsageError(
        `${position}: the file must contain whsec_ followed by 24 to 64 random bytes in base64`,
      )
    }
  }
  return read
}

function readAlert(alert: TableReader): SetupAlert {
  const values = definitionFields.map((name) => [name, alert.read(name, (value) => value)] as const)
  const read = {
    at: alert.at,
    name: alert.text('name', nameProblem),
    endpoint: alert.text('endpoint', nameProblem),
    definition: Object.fromEntries(values.filter(([, value]) => value !== undefined)),
  }
  alert.done()
  return read
}

function unique<T extends { at: string }>(items: T[], nameOf: (item: T) => string, itemKind: string): void {
  const itemsByName = new Map<string, T>()
  for (const item of items) {
    const firstItem = itemsByName.get(nameOf(item))
    if (firstItem !== undefined) {
      throw new UsageError(`${item.at}: duplicate ${itemKind}; first defined at ${firstItem.at}`)
    }
    itemsByName.set(nameOf(item), item)
  }
}

type Problem = (text: string) => string | null

/** Each reader records its field, so that `done` can report the rest. */
interface TableReader {
  path: string
  at: string
  text(name: string, problem: Problem): string
  textOrNull(name: string, problem: Problem): string | null
  texts(name: string): string[]
  /** The raw value, for a reader that throws its own message. */
  read<T>(name: string, reader: (value: unknown) => T): T
  flag(name: string): boolean
  wholeNumber(name: string, min: number, max: number): number // max by default
  time(name: string, read: (text: string) => number | null): number | null
  tables(name: string): TableReader[]
  /** Throws for a field that no reader has read. */
  done(): void
}

/** Reads the fields of one TOML table by name and type. A field that no reader reads is an error. */
function readTable(table: unknown, path: string, locations: { where(path: string): string }): TableReader {
  const position = locations.where(path)
  if (typeof table !== 'object' || table === null || Array.isArray(table))
    throw new UsageError(`${position}: must be a table`)
  const values = table as { [name: string]: unknown }
  const knownNames: string[] = []
  const pathOf = (name: string) => (path === '' ? name : `${path}.${name}`)
  const wrong = (name: string, reason: string) =>
    new UsageError(`${locations.where(pathOf(name))}: ${reason}`)

  const valueOf = (name: string): unknown =>
    knownNames.push(name) > 0 && Object.hasOwn(values, name) ? values[name] : undefined

  function textOrNull(name: string, problem: Problem): string | null {
    const value = valueOf(name)
    if (value === undefined) return null
    if (typeof value !== 'string') throw wrong(name, 'must be a string')
    const text = value.trim()
    const reason = problem(text)
    if (reason !== null) throw wrong(name, reason)
    return text
  }

  const list = (name: string, itemKind: string): unknown[] =>
    listOf(valueOf(name), wrong(name, `must be a list of ${itemKind}`))

  return {
    path,
    at: position,
    textOrNull,
    text(name, problem) {
      const value = textOrNull(name, problem)
      if (value === null) throw new UsageError(`${position}: ${name} is missing`)
      return value
    },
    texts(name) {
      const texts = list(name, 'strings')
      if (!texts.every((text) => typeof text === 'string')) throw wrong(name, 'must be a list of strings')
      return [...new Set(texts)]
    },
    read: (name, reader) =>
      withPosition(
        () => reader(valueOf(name)),
        (reason) => wrong(name, reason),
      ),
    flag(name) {
      const value = valueOf(name) ?? false
      if (typeof value === 'boolean') return value
      throw wrong(name, 'must be true or false')
    },
    wholeNumber(name, min, max) {
      const value = valueOf(name) ?? max
      if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
      throw wrong(name, `must be a whole number from ${min} to ${max}`)
    },
    time(name, read) {
      const text = textOrNull(name, () => null)
      const ms = text === null ? null : read(text)
      if (text === null || ms !== null) return ms
      throw wrong(name, 'must be a time such as 2027-01-31T18:00:00Z or a date such as 2027-01-31')
    },
    tables: (name) =>
      list(name, 'tables').map((innerTable, index) =>
        readTable(innerTable, `${pathOf(name)}[${index}]`, locations),
      ),
    done() {
      const unknown = Object.keys(values).find((name) => !knownNames.includes(name))
      if (unknown === undefined) return
      const near = nearest(unknown, knownNames)
      throw wrong(unknown, near === null ? 'unknown field' : `unknown field; did you mean ${near}?`)
    },
  }
}

function listOf(value: unknown, wrong: Error): unknown[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw wrong
  return value
}

/** Adds the position in the file to the message of a reader. */
function withPosition<T>(read: () => T, wrong: (reason: string) => Error): T {
  try {
    return read()
  } catch (error) {
    throw wrong(error instanceof Error ? error.message : String(error))
  }
}
