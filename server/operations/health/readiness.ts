/** The checks of `/readyz`, which the doctor and the other nodes see too, each with a sentence for operators. */
import { limits } from '../../limits.ts'
import { sizeText } from '../../text/text.ts'
import type { StoreErrorKind } from '../../../db/contract/errors.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { DiskWatch } from '../../system/disk.ts'
import type { MemoryWatch } from './memory.ts'
import type { Jobs } from '../../system/scheduler.ts'

/** What the checks of the process itself need. */
export interface OwnServices {
  store: Pick<Store, 'events' | 'behind'>
  disk: DiskWatch
  memory: MemoryWatch
  jobs: Pick<Jobs, 'late'>
}

export interface ReadinessServices extends OwnServices {
  store: Store
  state: { isDraining: boolean; storeFailed: string | null }
}

export interface Check {
  name: 'draining' | 'store' | 'disk' | 'queue' | 'memory' | 'jobs'
  ok: boolean
  detail: string
}

/** A load balancer that gets no answer in time repeats its question, and a request fails meanwhile. */
const storeMsMax = 4_000

/** The checks of contract §1, each with a sentence for operators. */
export async function readiness(services: ReadinessServices): Promise<Check[]> {
  const { store, state } = services
  const failed = state.storeFailed ?? (await storeFailure(store))
  // Only a server that ends has this check.
  const draining: Check[] = state.isDraining
    ? [{ name: 'draining', ok: false, detail: 'the server is finishing its last requests before it exits' }]
    : []
  return [
    ...draining,
    { name: 'store', ok: failed === null, detail: failed ?? 'writable' },
    ...ownChecks(services),
  ]
}

/** Why the database cannot be used; null when it can. */
async function storeFailure(store: Store): Promise<string | null> {
  const silent = Promise.withResolvers<string>()
  const timer = setTimeout(
    () => silent.resolve(`the store did not respond within ${storeMsMax / 1_000} s`),
    storeMsMax,
  )
  const healthCheck = readFailure(store).then((failure) => failure ?? writeFailure(store))
  return Promise.race([healthCheck, silent.promise]).finally(() => clearTimeout(timer))
}

async function readFailure(store: Store): Promise<string | null> {
  try {
    const { schema, newestSchema, isNewer } = await store.health()
    if (schema >= newestSchema && !isNewer) return null
    return `the database has schema ${schema}, this release works with ${newestSchema}`
  } catch {
    return 'the store does not respond'
  }
}

const writeFailures: { readonly [K in StoreErrorKind]?: string } = {
  not_writable: 'the database is read-only',
  read_only: 'the server may not write its data',
  storage_full: 'the disk of the database is full',
  locked: 'another program locks the database',
  unavailable: 'the database did not answer',
}

async function writeFailure(store: Store): Promise<string | null> {
  const kind = await store.writeFailure().catch(() => null) // a store that is closed has a check of its own
  return kind === null ? null : `the last write failed: ${writeFailures[kind] ?? kind}`
}

/** The checks that need no database. */
export function ownChecks({ store, disk, memory, jobs }: OwnServices): Check[] {
  const pressure = store.events.pressure()
  const late = jobs.late()
  const queueFull = pressure.queuedBytes > limits.queueBytesMax || pressure.oldestMs > limits.queueAgeMsMax
  return [
    { name: 'disk', ok: !disk.full() && !pressure.full, detail: `${sizeText(disk.freeBytes())} free` },
    {
      name: 'queue',
      ok: !queueFull,
      detail: `${sizeText(pressure.queuedBytes)} queued, the oldest for ${Math.round(pressure.oldestMs)} ms`,
    },
    {
      name: 'memory',
      ok: memory.pressure() === 'none',
      detail: `${sizeText(memory.usedBytes())} of ${sizeText(memory.limitBytes)} used`,
    },
    {
      name: 'jobs',
      ok: late.length === 0,
      detail: late.length === 0 ? 'on time' : `late: ${late.join(', ')}`,
    },
  ]
}
