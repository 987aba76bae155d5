/**
 * Databases of earlier schemas, stored in `fixtures/`: each was written by the release with this schema, with the facts
 * that every later upgrade must preserve. Save one before the schema changes: `bun tests/store/fixture.ts`, and one
 * with two sealed index segments by `bun tests/store/fixture.ts sealed`. Those of PostgreSQL: `postgres-fixture.ts`.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import { copiesOf } from '../../server/operations/backup/check.ts'
import type { Store, StoredEvent } from '../../db/contract/store.ts'
import { tempDir } from '../support/temp-dir.ts'
import { makeAccount, makeAudit, makeBatch, makeEvent, makeKey, makeOrg, noon } from './make.ts'
import { makeEndpoint } from './webhook-make.ts'

export const fixturesFolder = join(import.meta.dir, 'fixtures')

/**
 * What people would miss if an upgrade lost it. Fields are only ever added, because older fixtures lack the newer ones.
 */
export interface Content {
  orgs: string[]
  accounts: string[]
  keys: string[] // hashes
  endpoints: string[]
  tools: string[]
  memories: string[]
  events: { [orgId: string]: { total: number; texts: string } } // hash of all events, newest first as they were sent
  metrics: { [orgId: string]: number }
  /** Events by verdict; fixtures before schema 31 have no judge beside it. */
  verdicts: { [orgId: string]: { [verdict: string]: number } }
  trail: { [orgId: string]: string } // hash of the chain at the fixture's length
}

export interface Fixture {
  /** Name of its files, for example `schema-0012-sealed`. */
  name: string
  schema: number
  content: Content
  /** Writes the data folder as the earlier release left it. */
  unpack(folder: string): void
}

export function fixtures(folder = fixturesFolder): Fixture[] {
  const names = readdirSync(folder).filter((name) => /^schema-.*\.facts$/.test(name))
  return names.sort().map((name) => {
    const { schema, content, heads } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as {
      schema: number
      content: Content
      heads: string
    }
    return {
      name: name.replace('.facts', ''),
      schema,
      content,
      unpack(to) {
        mkdirSync(to, { recursive: true, mode: 0o700 })
        const packed = readFileSync(join(folder, name.replace('.facts', '.db.zst')))
        writeFileSync(join(to, 'sightglass.db'), Bun.zstdDecompressSync(packed), { mode: 0o600 })
        writeFileSync(join(to, 'audit-heads'), heads, { mode: 0o600 })
      },
    }
  })
}

/** Makes a folder with one of everything (or with many events) and packs it. Returns its schema version. */
export async function saveFixture(
  targetFolder: string,
  kind: 'everything' | 'sealed' = 'everything',
  zstdLevel = 19,
): Promise<number> {
  using temp = tempDir('fixture')
  const folder = temp.join('data')
  const store = await openStore({ folder, now: noon })
  if (kind === 'sealed') await fillSealed(store, 'org_sealed')
  else for (const orgId of ['org_first', 'org_second']) await fill(store, orgId)
  const content = await contentOf(store)
  const { schema } = await store.health()
  await store.close()
  await copiesOf(openDatabaseAdmin(folder)).copyTo(temp.join('copy.db'))
  const packed = Bun.zstdCompressSync(readFileSync(temp.join('copy.db')), { level: zstdLevel })
  const heads = readFileSync(join(folder, 'audit-heads'), 'utf8')
  mkdirSync(targetFolder, { recursive: true })
  const suffix = kind === 'sealed' ? '-sealed' : ''
  const stem = join(targetFolder, `schema-${String(schema).padStart(4, '0')}${suffix}`)
  writeFileSync(`${stem}.db.zst`, packed)
  writeFileSync(`${stem}.facts`, `${JSON.stringify({ schema, content, heads }, null, 1)}\n`)
  return schema
}

/** Verdicts of the events of `fill`, of nine; the others have none. */
const verdicts = ['verified', 'contradicted', 'unverifiable', 'verified', 'a word of the sender']

/** Every seventh event of `fill` is an hour late. */
function filledAtMs(number: number): number {
  return noon + number * 1_000 - (number % 7 === 0 ? 3_600_000 : 0)
}

export async function fill(store: Store, orgId: string, batches = 60): Promise<void> {
  const audit = () => makeAudit(orgId)
  await store.orgs.create({ org: makeOrg({ id: orgId, slug: orgId.replace('_', '-') }), audit: audit() })
  await store.accounts.create({ account: makeAccount(), orgId, role: 'owner', audit: audit() })
  await store.keys.create({ key: makeKey(orgId), audit: audit() })
  await store.webhooks.createEndpoint({ endpoint: makeEndpoint(orgId, `ep_${orgId}`), audit: audit() })
  const tools = ['cart.add', 'cart.pay'].map((name) => ({
    name,
    digest: name,
    json: JSON.stringify({ name }),
  }))
  const options = { orgId, siteId: 'shop-acme', now: noon, sitesMax: 10 }
  await store.registry.pushTools({ ...options, tools, replace: false, toolsMax: 10, versionsMax: 10 })
  const snapshot = { digest: 'd', json: '{"siteMap":{}}', score: 17, computed: true, versionsMax: 10 }
  await store.registry.pushMemory({ ...options, ...snapshot })
  // More than one sealed segment, some late arrivals, and a tail that is not folded yet.
  for (let batchIndex = 0; batchIndex < batches; batchIndex++) {
    const events = Array.from({ length: 100 }, (_, index) => {
      const number = batchIndex * 100 + index
      const occurredAtMs = filledAtMs(number)
      const vendor = `vendor ${number % 13}`
      const type = number % 3 === 0 ? 'tool.executed' : 'agent.detected'
      const verdict = verdicts[number % 9] ?? null
      const agent = verdict === null ? {} : { agent: { vendor, verdict } }
      const json = JSON.stringify({ id: `evt_${number}`, number, vendor, odd: '\u2028 "é" 漢字', ...agent })
      const fields = { occurredAtMs, vendor, verdict, type, siteId: `site-${number % 4}`, json }
      return makeEvent(`evt_${number}`, fields)
    })
    await store.events.append(makeBatch(orgId, events))
  }
}

/** How many events `fillSealed` writes: two segments of 65,536 are sealed, the rest is a tail. */
export const sealedEvents = 132_000

/** Name and purpose of event `number`. `Manus-User` is event 1,000 of each segment and of the tail. */
export function sealedAgent(number: number): { name: string; purpose: string } {
  if (number % 65_536 === 1_000) return { name: 'Manus-User', purpose: 'user' }
  const name = ['GPTBot', 'ChatGPT-User', 'OAI-SearchBot'][number % 3]!
  return { name, purpose: ['training', 'user', 'search'][number % 3]! }
}

/** Events with an agent's name and purpose, which schema 12 stores but does not index. */
async function fillSealed(store: Store, orgId: string): Promise<void> {
  await store.orgs.create({ org: makeOrg({ id: orgId, slug: 'sealed' }), audit: makeAudit(orgId) })
  for (let from = 0; from < sealedEvents; from += 1_000) {
    const events = Array.from({ length: 1_000 }, (_, index) => {
      const number = from + index
      const occurredAtMs = noon + Math.floor(number / 100) * 1_000
      const agent = { class: 'crawler', vendor: 'OpenAI', ...sealedAgent(number) }
      const occurredAt = new Date(occurredAtMs).toISOString()
      const event = {
        id: `evt_${number}`,
        siteId: 'shop-acme',
        sessionId: `sess_${number % 500}`,
        occurredAt,
      }
      const json = JSON.stringify({ ...event, type: 'agent.detected', outcome: 'success', agent })
      const { class: agentClass, vendor } = agent
      return makeEvent(event.id, {
        sessionId: event.sessionId,
        occurredAtMs,
        class: agentClass,
        vendor,
        json,
      })
    })
    await store.events.append(makeBatch(orgId, events))
  }
}

export async function contentOf(store: Store): Promise<Content> {
  const orgs = (await store.orgs.list()).map(({ id }) => id).sort()
  const content: Content = {
    orgs,
    accounts: (await store.accounts.list()).map(({ email }) => email).sort(),
    keys: [],
    endpoints: [],
    tools: [],
    memories: [],
    events: {},
    metrics: {},
    verdicts: {},
    trail: {},
  }
  for (const orgId of orgs) {
    const everywhere = { orgId, siteIds: [], limit: 100, bytesMax: 1_000_000, after: null }
    content.keys.push(...(await store.keys.list({ orgId })).map(({ hash }) => hash))
    content.endpoints.push(...(await store.webhooks.endpoints(orgId)).map(({ endpoint }) => endpoint.url))
    content.tools.push(
      ...(await store.registry.tools({ ...everywhere, withRemoved: true })).tools.map(({ json }) => json),
    )
    content.memories.push(...(await store.registry.memories(everywhere)).memories.map(({ json }) => json))
    content.events[orgId] = await eventsOf(store, orgId)
    const { total } = await store.events.metrics({ orgId, sinceMs: 0, untilMs: null, rowsMax: 100_000 })
    content.metrics[orgId] = total
    const query = { orgId, sinceMs: 0, untilMs: null, stepMs: null }
    const { rows } = await store.events.breakdown({ ...query, by: 'verdict' })
    const counts: Content['verdicts'][string] = {}
    for (const { value, count } of rows) counts[value ?? ''] = (counts[value ?? ''] ?? 0) + count
    content.verdicts[orgId] = counts
  }
  for (const [orgId, { hash }] of Object.entries(await store.audit.heads())) content.trail[orgId] = hash
  return content
}

const sentAt = /"occurredAt":"([^"]+)"|"number":(\d+)/

/** The occurredAt with which a fixture's event was sent, which may be far ahead of its arrival. */
function sentAtMs(json: string): number {
  const [, occurredAt, number] = sentAt.exec(json) ?? [] // some events have neither
  return occurredAt === undefined ? filledAtMs(Number(number)) : Date.parse(occurredAt)
}

async function eventsOf(store: Store, orgId: string): Promise<{ total: number; texts: string }> {
  const events: StoredEvent[] = []
  let position: Parameters<Store['events']['page']>[0]['before'] = null
  do {
    const page: Awaited<ReturnType<Store['events']['page']>> = await store.events.page({
      orgId,
      filter: {},
      limit: 5_000,
      before: position,
      ceilingSeq: null,
    })
    events.push(...page.events)
    position = page.next
  } while (position !== null)
  const sentEvents = events.map(({ json, seq }) => ({ json, seq, atMs: sentAtMs(json) }))
  sentEvents.sort((a, b) => b.atMs - a.atMs || b.seq - a.seq)
  const texts = new Bun.CryptoHasher('sha256').update(sentEvents.map(({ json }) => json).join(''))
  return { total: events.length, texts: texts.digest('hex') }
}

if (import.meta.main) {
  const schema = await saveFixture(fixturesFolder, process.argv[2] === 'sealed' ? 'sealed' : 'everything')
  process.stdout.write(`saved a database of schema ${schema}\n`)
}
