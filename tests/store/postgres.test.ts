/** The PostgreSQL engine passes the conformance suite, with one node and with two. */
import { openPostgresStore } from '../../db/postgres/store.ts'
import { database, type TestDatabase } from '../support/postgres.ts'
import { noon } from './make.ts'
import { testStore } from './conformance.ts'

/** Cases open a folder again. Each folder stands for a database. */
const urls = new Map<string, Promise<string>>()

interface Localized {
  cluster: TestDatabase['cluster']
  name: string
  url: string
}

let localized: Promise<Localized> | null = null
let copies = 0

/** Its own order of texts differs from that of bytes, which the tables ask for. Migrated by a node that opened it. */
async function makeLocalized(): Promise<Localized> {
  const { url, cluster, name: databaseName } = await database()
  const name = `${databaseName}_localized`
  await cluster.sql(`CREATE DATABASE ${name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'`)
  const localDatabase = { cluster, name, url: url.replace(/[^/]+$/, name) }
  await (await openUrl(localDatabase.url, 'one')).close()
  return localDatabase
}

/** A copy takes a tenth of the time of the migrations. */
async function localizedDatabase(): Promise<string> {
  const { cluster, name, url } = await (localized ??= makeLocalized())
  const copy = `${name}_${++copies}`
  await cluster.sql(`CREATE DATABASE ${copy} TEMPLATE ${name} STRATEGY FILE_COPY`)
  return url.replace(/[^/]+$/, copy)
}

function urlOf(folder: string): Promise<string> {
  const url = urls.get(folder) ?? localizedDatabase()
  urls.set(folder, url)
  return url
}

function openUrl(url: string, node: string) {
  return openPostgresStore({ url, node, now: noon, readers: 2, readDeadlineMs: 10_000 })
}

async function openNode(folder: string, node: string) {
  return openUrl(await urlOf(folder), node)
}

testStore(
  'postgres',
  (folder) => openNode(folder, 'one'),
  async (folder) => [await openNode(folder, 'one'), await openNode(folder, 'two')] as const,
)
