/**
 * How the store names a log, and what the ids of its events are made with. An id that is a plain hash of a line lets
 * whoever knows the rest of the line try all addresses, so ids and names are keyed with a secret of the store, which is
 * the same on every node and in every copy. A log that an earlier release began keeps its form until it ends, because
 * its lines would otherwise be stored twice.
 */
import type { Store } from '../../db/contract/store.ts'

export interface NamedSource {
  name: string // in the store
  secret: string | null // of its events' ids; null: they are not keyed
}

/** A source with how far it was read; null when it is new. */
export interface FoundSource extends NamedSource {
  known: { position: number; tail: string } | null
}

type Stores = Pick<Store, 'accessLogs' | 'secret'>

const secrets = new WeakMap<Stores['accessLogs'], Promise<string>>()

function secretOf(store: Stores): Promise<string> {
  let secret = secrets.get(store.accessLogs)
  if (secret === undefined) {
    secret = store.secret('access-log-ids')
    secrets.set(store.accessLogs, secret)
    secret.catch(() => secrets.delete(store.accessLogs)) // asked again when the database answers
  }
  return secret
}

/** Finds the log that a reader identifies by `source`: by its own name if an earlier release began it, else keyed. */
export async function findSource(
  store: Stores,
  { orgId, siteId, source }: { orgId: string; siteId: string; source: string },
): Promise<FoundSource> {
  const older = await store.accessLogs.position({ orgId, siteId, source })
  if (older !== null) return { name: source, secret: null, known: older }
  const secret = await secretOf(store)
  const name = keyedName(secret, source)
  return { name, secret, known: await store.accessLogs.position({ orgId, siteId, source: name }) }
}

/** 128 bits of a SHA-256 whose other half is not known, so nobody can extend it. */
function keyedName(secret: string, source: string): string {
  Bun.SHA256.hash(`${secret} source ${source}`, digest)
  return `k.${digest.toString('base64url', 0, 16)}`
}

const digest = Buffer.alloc(Bun.SHA256.byteLength)
