/** Data of every kind for tests of copies: a row of each table, hostile texts, erased, removed and expired events. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../db/open.ts'
import { openDatabase } from '../../db/sqlite/file/connection.ts'
import type { Store } from '../../db/contract/store.ts'
import { openSigningKey, signHead, signTrim } from '../../server/audit/signing.ts'
import { openSecretBox, readKeyFile } from '../../server/system/encryption.ts'
import { keyIdOf } from '../../server/system/key-ring.ts'
import { linesBatch, someLog } from './access-log-cases.ts'
import { makeAccount, makeAudit, makeBatch, makeEvent, makeKey, makeOrg, noon } from './make.ts'
import { makeEndpoint } from './webhook-make.ts'

const hostile = `\u2028 "é" 漢字 '; DROP TABLE org; -- \\ {} $1 ?1 \u0001 ${'\u{1f47e}'.repeat(3)}`

const dayMs = 24 * 3_600_000

/** Event `number` of an organization; every 50th belongs to a session that is erased, every 40th to a removed site. */
function eventOf(number: number, receivedAtMs: number) {
  const id = `evt_${number}`
  const sessionId = number % 50 === 0 ? 'sess_erased' : `sess_${number % 97}`
  const siteId = number % 40 === 1 ? 'site-removed' : `site-${number % 3}`
  const vendor = number % 7 === 0 ? hostile : `vendor ${number % 13}`
  const occurredAtMs = receivedAtMs - (number % 11) * 600_000
  const page = `/page/${number % 1_000}`
  const subject = number % 60 === 0 ? `subject ${number}` : null
  const json = JSON.stringify({ id, siteId, sessionId, number, text: hostile, vendor })
  const fields = { sessionId, siteId, vendor, occurredAtMs, page, subject, json, durationMs: number % 5 }
  return makeEvent(id, {
    ...fields,
    tool: `tool ${number % 4}`,
    class: 'crawler',
    name: 'GPTBot',
    purpose: 'training',
  })
}

/** Appends in batches of up to `size`, from `first` on. */
export async function appendMany(
  store: Store,
  orgId: string,
  {
    first,
    count,
    size = 100,
    receivedAtMs = noon,
  }: { first: number; count: number; size?: number; receivedAtMs?: number },
): Promise<void> {
  for (let from = first; from < first + count; from += size) {
    const length = Math.min(size, first + count - from)
    const events = Array.from({ length }, (_, index) => eventOf(from + index, receivedAtMs))
    await store.events.append({ ...makeBatch(orgId, events), receivedAtMs })
  }
}

export const orgIds = ['org_large', 'org_small', 'org_single']

/** Fills a new data folder. `events` of the first organization; the others have a few hundred. */
export async function makeEverything(folder: string, events = 3_000): Promise<void> {
  openSecretBoxIn(folder)
  const store = await openStore({ folder, now: noon })
  for (const orgId of orgIds) {
    const audit = () => makeAudit(orgId, { metadata: { label: hostile } })
    await store.orgs.create({ org: makeOrg({ id: orgId, slug: orgId, name: hostile }), audit: audit() })
    const account = makeAccount()
    await store.accounts.create({ account, orgId, role: 'owner', audit: audit() })
    await store.keys.create({ key: makeKey(orgId), audit: audit() })
    await store.webhooks.createEndpoint({ endpoint: makeEndpoint(orgId, `ep_${orgId}`), audit: audit() })
    const scope = { orgId, siteId: 'site-1', now: noon }
    const tools = [{ name: hostile, digest: 'd', json: JSON.stringify({ name: hostile }) }]
    await store.registry.pushTools({
      ...scope,
      tools,
      sitesMax: 9,
      replace: false,
      toolsMax: 9,
      versionsMax: 9,
    })
    const memory = {
      digest: 'd',
      json: `{"siteMap":${JSON.stringify(hostile)}}`,
      score: 17.5,
      computed: true,
    }
    await store.registry.pushMemory({ ...scope, ...memory, sitesMax: 9, versionsMax: 9 })
    const robots = { text: hostile, fromMs: noon, setBy: 'cli', sitesMax: 9, versionsMax: 9 }
    await store.robots.set({ ...scope, ...robots, audit: audit() })
    const link = { id: `shr_${orgId}`, orgId, tokenHash: `hash of ${orgId}`, name: hostile, content: '{}' }
    const times = { createdBy: account.id, createdAtMs: noon, expiresAtMs: noon + dayMs }
    const shared = { link: { ...link, ...times }, roles: ['owner' as const], linksMax: 9, endedBeforeMs: 0 }
    await store.shareLinks.create({ ...shared, audit: audit() })
  }
  await appendMany(store, 'org_large', { first: 0, count: 600, receivedAtMs: noon - 10 * dayMs })
  await appendMany(store, 'org_large', {
    first: 600,
    count: events - 600,
    size: events > 10_000 ? 1_000 : 100,
  })
  await appendMany(store, 'org_small', { first: 0, count: 700, size: 50 })
  await appendMany(store, 'org_single', { first: 0, count: 40, size: 1 })
  const judged = { verdict: 'contradicted', judgedBy: 'appliance', observedBy: 'appliance' }
  const impostor = makeEvent('evt_impostor', { ...judged, network: '192.0.2.0/24' })
  await store.events.append(makeBatch('org_single', [impostor]))
  await store.events.removeSite({ orgId: 'org_small', siteId: 'site-removed', audit: makeAudit('org_small') })
  await store.events.append(linesBatch('org_small', someLog, 0, someLog.length))
  const erase = { orgId: 'org_large', sessionIds: ['sess_erased'], subjects: [] }
  let { next } = await store.events.erase({ ...erase, audit: makeAudit('org_large'), cursor: null })
  while (next !== null) next = (await store.events.erase({ ...erase, audit: null, cursor: next })).next
  const expire = { orgId: 'org_large', receivedBeforeMs: noon - 5 * dayMs }
  while (!(await store.events.expire(expire)).done);
  await trim(store, folder)
  await store.close()
  fillTables(folder)
}

/** A trim and checkpoints that the folder's key signed. */
async function trim(store: Store, folder: string): Promise<void> {
  const orgId = 'org_large'
  const key = openSigningKey(folder)
  for (let day = 0; day < 5; day++)
    await store.audit.append(makeAudit(orgId, { occurredAtMs: noon + day * dayMs }))
  const point = await store.audit.trimPoint({ orgId, beforeMs: noon + 2 * dayMs })
  const signed = signTrim(key, orgId, point!, noon)
  await store.audit.trim({ trim: signed, audit: makeAudit(orgId) })
  while (!(await store.audit.sweep(orgId)).done);
  const heads = Object.entries(await store.audit.heads())
  const lines = heads.map(([id, head]) => `${JSON.stringify(signHead(key, id, head, noon))}\n`)
  writeFileSync(join(folder, 'audit-checkpoints'), lines.join(''))
}

function openSecretBoxIn(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  openSecretBox(folder)
}

function sealed(folder: string): string {
  const [key] = readKeyFile(join(folder, 'secret.key'))!
  return `v1.${keyIdOf(key!)}.${'x'.repeat(20)}`
}

const untouched = [
  'schema_migration',
  'node',
  'job_lease',
  'copy_state',
  'audit_checkpoint',
  'sqlite_sequence',
]

/** Two rows for each table that has none, whatever its columns are, so that a future table is tested too. */
function fillTables(folder: string): void {
  const db = openDatabase(join(folder, 'sightglass.db'), { readwrite: true, strict: true })
  const tables = db
    .query<{ name: string; sql: string }>(`SELECT name, sql FROM sqlite_schema WHERE type = 'table'`)
    .all()
  const ids: { [column: string]: unknown } = {
    org_id: 'org_small',
    account_id: db.query<{ id: string }>('SELECT id FROM account ORDER BY id LIMIT 1').get()!.id,
    endpoint_id: 'ep_org_small',
    delivery_seq: 7,
  }
  db.run('PRAGMA foreign_keys = OFF')
  for (const { name, sql } of tables) {
    const isEmpty = db.query(`SELECT 1 FROM ${name} LIMIT 1`).get() === null
    if (!isEmpty || untouched.includes(name) || name.startsWith('event_')) continue
    const columns = db
      .query<{ name: string; type: string }>(`SELECT name, type FROM pragma_table_info('${name}')`)
      .all()
    const rows = [1, 2].map((row) =>
      columns.map((column) => {
        const allowed = new RegExp(`${column.name} IN \\(('[^']*'|\\d+)`).exec(sql)?.[1]
        if (column.name === 'seq') return row * 100
        if (column.name in ids) return ids[column.name]
        if (allowed !== undefined) return allowed.startsWith("'") ? allowed.slice(1, -1) : Number(allowed)
        if (column.name.includes('sealed_')) return sealed(folder)
        if (column.type === 'INTEGER') return 1_000 + row
        if (column.type === 'REAL') return row / 3
        return column.type === 'BLOB' ? new Uint8Array([0, row, 255]) : `${hostile} ${row}`
      }),
    )
    const marks = columns.map(() => '?').join(', ')
    const insert = db.query(`INSERT OR IGNORE INTO ${name} VALUES (${marks})`)
    for (const row of rows) insert.run(...(row as never[]))
  }
  // A number that a deleted row had is not given again.
  db.run(`UPDATE sqlite_sequence SET seq = seq + 5 WHERE name = 'webhook_delivery'`)
  db.close()
}

/** Tables of a data folder without a row, of those that are copied. */
export function emptyTables(folder: string): string[] {
  const db = openDatabase(join(folder, 'sightglass.db'), { readonly: true })
  const tables = db.query<{ name: string }>(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all()
  const emptyNames = tables
    .map(({ name }) => name)
    .filter((name) => db.query(`SELECT 1 FROM ${name} LIMIT 1`).get() === null)
  db.close()
  return emptyNames.filter((name) => !untouched.includes(name))
}
