/** Validates a setup file: organizations with their sites, keys and endpoints. */
import type { KeyKind } from '../../../db/contract/store.ts'
import { parseTime } from '../../clock.ts'
import { limits } from '../../limits.ts'
import { UsageError } from '../../errors.ts'
import { isSlug, nameProblem } from '../../identity/organizations/organizations.ts'
import { readRetryWaits } from '../../webhooks/endpoints/endpoint-fields.ts'
import { signingKey } from '../../webhooks/delivery/signing.ts'
import { readTable, type TableReader } from './table-reader.ts'

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
}

export interface SetupSite {
  at: string
  siteId: string
  name: string | null
  hidden: boolean
  restricted: boolean
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

/** `where` formats a path such as `organizations[0].keys[1].hash`; `readSecret` reads the file of a secret. */
export interface Reading {
  where(path: string): string
  readSecret(path: string): string
}

export function readSetup(table: unknown, reading: Reading): Setup {
  const top = readTable(table, '', reading)
  const organizations = top.tables('organizations').map((each) => readOrg(each, reading))
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
    endpoints: org.tables('endpoints').map((each) => readEndpoint(each, reading)),
  }
  org.done()
  unique(read.sites, ({ siteId }) => siteId, 'site')
  unique(read.endpoints, ({ label }) => label, 'endpoint')
  return read
}

function readSite(site: TableReader): SetupSite {
  const read = {
    at: site.at,
    siteId: site.text('id', siteProblem),
    name: site.textOrNull('name', nameProblem),
    hidden: site.flag('hidden'),
    restricted: site.flag('restricted'),
  }
  site.done()
  return read
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
  const [mark, kind] = Object.entries(kinds).find(([, each]) => each === kindText)!
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

function readEndpoint(endpoint: TableReader, { where, readSecret }: Reading): SetupEndpoint {
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
      const at = where(`${endpoint.path}.secretFile`)
      throw new UsageError(`${at}: the file must contain whsec_ followed by 24 to 64 random bytes in base64`)
    }
  }
  return read
}

function unique<T extends { at: string }>(items: T[], nameOf: (item: T) => string, what: string): void {
  const seen = new Map<string, T>()
  for (const item of items) {
    const before = seen.get(nameOf(item))
    if (before !== undefined) {
      throw new UsageError(`${item.at}: duplicate ${what}; first defined at ${before.at}`)
    }
    seen.set(nameOf(item), item)
  }
}
