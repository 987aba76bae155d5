/** The PostgreSQL engine passes the conformance suite, with one node and with two. */
import { openPostgresStore } from '../../db/postgres/store.ts'
import { database } from '../support/postgres.ts'
import { noon } from './make.ts'
import { testStore } from './conformance.ts'

/** Cases open a folder again. Each folder stands for a database. */
const urls = new Map<string, Promise<string>>()

/** Its own order of texts differs from that of bytes, which the tables ask for. */
async function localizedDatabase(): Promise<string> {
  const { url, cluster, name } = await database()
  const localized = `${name}_localized`
  await cluster.sql(`CREATE DATABASE ${localized} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'`)
  return url.replace(/[^/]+$/, localized)
}

function urlOf(folder: string): Promise<string> {
  const url = urls.get(folder) ?? localizedDatabase()
  urls.set(folder, url)
  return url
}

async function openNode(folder: string, node: string) {
  return openPostgresStore({
    url: await urlOf(folder),
    ...{ node, now: noon, readers: 2, readDeadlineMs: 10_000 },
  })
}

testStore(
  'postgres',
  (folder) => openNode(folder, 'one'),
  async (folder) => [await openNode(folder, 'one'), await openNode(folder, 'two')] as const,
)
