/** The verbs of records pass the conformance suite on PostgreSQL. */
import { database } from '../support/postgres.ts'
import { testStore } from './conformance.ts'
import { openRecords, type RecordsStore } from './postgres-records.ts'

/** These append events, or read facts of a whole engine. */
const groupsOfEvents = [
  ...['appending events', 'watching events', 'removing events', 'guard rails', 'filtering events'],
  ...['walking events', 'counting and searching events', 'sessions', 'classes and vendors'],
  ...['counts under any filter', 'histograms', 'the newest values', 'new values', 'durations'],
  ...['distinct counts', 'emptying organizations'],
]
const casesOfEvents = [
  'removal needs asking and time; nothing is left but the chain, and others are untouched',
  'a site is there with its first event or its first choice, and restriction is known at once',
  'times are told',
  'health tells schema, engine and sizes',
  'closing finishes what was asked before and refuses what comes after',
  'arrival numbers are dense from 1 and become visible in order while both append',
  'an id that one node stored is known to the other, also when both send it at once',
  'a restricted site and a removed organization are known to every node within a second',
  'a count requested from the other node after an acknowledgement includes it',
  'a watch is called soon for events of the other node',
  'both nodes read and write every organization',
  'the time of arrival never falls between nodes whose clocks differ',
  'after a clock that was more than an hour ahead, arrivals show their own time again',
]

const urls = new Map<string, Promise<string>>()

/** Its own order of texts differs from that of bytes, which the tables ask for. */
async function localizedDatabase(): Promise<string> {
  const { url, cluster, name } = await database()
  const localized = `${name}_localized`
  await cluster.psql(`CREATE DATABASE ${localized} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'`)
  return url.replace(/[^/]+$/, localized)
}

/** A folder stands for a database, because cases open a store again by it. */
async function open(folder: string): Promise<RecordsStore> {
  const url = urls.get(folder) ?? localizedDatabase()
  urls.set(folder, url)
  return openRecords({ url: await url })
}

testStore(
  'records on postgres',
  open,
  async (folder) => [await open(folder), await open(folder)] as const,
  (group, name) => !groupsOfEvents.includes(group) && !casesOfEvents.includes(name),
)
