/** The access logs that are read, for Settings, and what the command that reads a first one needs. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { Elysia } from 'elysia'
import { keylessIds } from '../../db/contract/provenance.ts'
import type { AccessSource, Store } from '../../db/contract/store.ts'
import { isoTime, type Clock } from '../clock.ts'
import { readQuery } from '../http/request.ts'
import { limits } from '../limits.ts'
import { json } from '../http/response.ts'
import type { SignIns } from '../identity/sign-in/sign-ins.ts'
import type { WatchedLog } from './claims.ts'
import type { AccessReceiver } from './receiver.ts'
import type { SyslogListener, SyslogReport } from './syslog.ts'
import { hourMs, weekMs } from '../../db/contract/units.ts'

export interface SourceRoutesServices {
  store: Pick<Store, 'accessLogs' | 'orgs' | 'events' | 'keys'>
  clock: Clock
  signIns: SignIns
  accessReceiver: AccessReceiver
  syslogListeners: SyslogListener[]
  location: string
}

export function sourceRoutes(services: SourceRoutesServices) {
  const { store, clock, signIns, accessReceiver, syslogListeners, location } = services
  return new Elysia()
    .get('/api/sources/first', async ({ request }) => {
      const { org, account } = await signIns.require(request)
      readQuery(request, {})
      return json(firstSource(org.slug, account.operator ? location : null))
    })
    .get('/api/sources', async ({ request }) => {
      const { org } = await signIns.require(request, ['owner', 'admin', 'analyst'])
      readQuery(request, {})
      const sources = await store.accessLogs.sources(org.id)
      const reports = syslogListeners.map((listener) => listener.report())
      const syslog = reports.filter((report) => report.org === org.slug || report.org === org.id)
      const view = sourcesView(sources, accessReceiver.watched(org.id), syslog)
      return json({ ...view, doors: await openDoors(store, org.id, clock.now()) })
    })
}

/** Where servers on Linux write their logs by default. */
const usualLogs = [
  '/var/log/nginx/access.log',
  '/var/log/apache2/access.log',
  '/var/log/httpd/access_log',
  '/var/log/caddy/access.log',
]

/** The parts of the command that imports a first log. Paths of this machine are for its operators. */
function firstSource(orgSlug: string, location: string | null) {
  const isFolder = location !== null && !location.includes('://') // else the URL of a database
  return {
    executable: location !== null && Bun.isStandaloneExecutable ? process.execPath : 'sightglass',
    dataDir: isFolder ? resolve(location) : null,
    org: orgSlug === 'default' ? null : orgSlug,
    log: (location === null ? undefined : usualLogs.find((path) => existsSync(path))) ?? usualLogs[0]!,
  }
}

export type FirstSource = ReturnType<typeof firstSource>

/** One log with all its rotated files, or the drains of a site. */
interface LogView {
  siteId: string
  path: string
  format: string
  lines: number
  agents: number
  people: number
  bad: number
  newestAt: string | null // time of its newest line
  storedAt: string | null
  isDrain: boolean
  /** Of a log that is read now; null for one that was imported, or whose reader ended. */
  reader: Pick<WatchedLog, 'behindBytes' | 'problem' | 'seenAt' | 'isRunning'> | null
}

function sourcesView(sources: AccessSource[], watched: WatchedLog[], syslog: SyslogReport[]) {
  const logs = new Map<string, LogView>()
  const listens = new Set(syslog.map(({ listen }) => listen))
  for (const source of sources) {
    if (listens.has(source.path)) continue
    const path = source.isDrain ? 'Log drains and syslog' : withoutRotation(source.path)
    const log = logOf(logs, source.siteId, path)
    // The newest is first.
    if (log.storedAt === null)
      Object.assign(log, {
        format: source.format,
        storedAt: isoTime(source.updatedMs),
        isDrain: source.isDrain,
      })
    log.lines += source.lines
    log.agents += source.stored + source.deduped
    log.people += source.people
    log.bad += source.bad
    const newestAt = source.newestMs === null ? null : isoTime(source.newestMs)
    if (newestAt !== null && (log.newestAt === null || newestAt > log.newestAt)) log.newestAt = newestAt
  }
  // A reader that was restarted comes after the one before.
  for (const { siteId, path, behindBytes, problem, seenAt, isRunning } of watched)
    logOf(logs, siteId, path).reader = { behindBytes, problem, seenAt, isRunning }
  return { logs: [...logs.values()], syslog }
}

export type SourcesView = ReturnType<typeof sourcesView> & { doors: OpenDoors }

function logOf(logs: Map<string, LogView>, siteId: string, path: string): LogView {
  const name = JSON.stringify([siteId, path])
  const existingLog = logs.get(name)
  if (existingLog !== undefined) return existingLog
  const log: LogView = {
    siteId,
    path,
    format: '',
    lines: 0,
    agents: 0,
    people: 0,
    bad: 0,
    newestAt: null,
    storedAt: null,
    isDrain: false,
    reader: null,
  }
  logs.set(name, log)
  return log
}

/** `access.log` of `access.log.2.gz` and `access.log-20261122`. */
function withoutRotation(path: string): string {
  return path.replace(/(?:[.-](?:\d{1,4}|\d{4}-?\d\d-?\d\d[\dT:._-]*)|\.old)?(?:\.(?:gz|zst))?$/, '')
}

interface OpenDoor {
  door: string | null // null: stored before doors were recorded
  key: string | null // null: a file, a socket or the command line of this machine
  label: string | null // of the key; null: it was deleted
  observers: string[] // `appliance` or ids of keys; none where nothing was judged
  events: number
  lastAt: string
}

/** Through which doors the newest events came, with whose keys, and who saw the addresses that were judged. */
export interface OpenDoors {
  rows: OpenDoor[] // most events first
  looked: number // events
  complete: boolean // they are all of the last week
}

const eventsMax = 50_000
const rowsMax = 200

async function openDoors(
  store: Pick<Store, 'events' | 'keys'>,
  orgId: string,
  nowMs: number,
): Promise<OpenDoors> {
  const sinceMs = Math.floor(nowMs / hourMs) * hourMs - weekMs
  const [{ groups, events, complete }, keys] = await Promise.all([
    store.events.top({
      orgId,
      eventsMax,
      budgetMs: limits.topMsMax,
      filter: { sinceMs },
      groups: [{ by: ['door', 'key', 'observedBy'], max: rowsMax }],
    }),
    store.keys.list({ orgId, kind: 'ingest' }),
  ])
  const labels = new Map(keys.map(({ id, label }) => [id, label]))
  const doors = new Map<string, OpenDoor>()
  for (const { values, count, lastMs } of groups[0]?.rows ?? []) {
    const [door = null, sender = null, observer = null] = values
    const key = sender === null || keylessIds.includes(sender) ? null : sender
    const name = JSON.stringify([door, key])
    const lastAt = isoTime(lastMs)
    const row = doors.get(name) ?? {
      door,
      key,
      label: key === null ? null : (labels.get(key) ?? null),
      observers: [],
      events: 0,
      lastAt,
    }
    doors.set(name, row)
    row.events += count
    if (lastAt > row.lastAt) row.lastAt = lastAt
    if (observer !== null && !row.observers.includes(observer)) row.observers.push(observer)
  }
  return { rows: [...doors.values()].toSorted((a, b) => b.events - a.events), looked: events, complete }
}
