/** Signatures of agents that were accepted: a row for each signature, and one for the request that used it. */
import type { SignatureStore } from '../../contract/signatures.ts'
import type { Database } from '../database.ts'
import type { WriteContext } from '../threads/contexts.ts'

/** Inserts a row unless it is there. Of two nodes that insert the same one, the later waits for the earlier. */
function insert(db: Database, hash: string, expiresAtMs: number): boolean {
  return (
    db
      .query('INSERT INTO signature_use (hash, expires_at_ms) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING')
      .run(Buffer.from(hash, 'hex'), expiresAtMs).changes > 0
  )
}

function has(db: Database, hash: string): boolean {
  return db.query('SELECT 1 FROM signature_use WHERE hash = ?').get(Buffer.from(hash, 'hex')) !== null
}

/** In the order of the hashes, so that nodes which use the same ones do not wait for each other in a circle. */
export function useSignatures(
  { db }: WriteContext,
  { uses }: Parameters<SignatureStore['use']>[0],
): boolean[] {
  const accepted = uses.map(() => false)
  const order = uses.map((_, index) => index).sort((a, b) => (uses[a]!.hash < uses[b]!.hash ? -1 : 1))
  for (const index of order) {
    const { hash, owner, expiresAtMs } = uses[index]!
    const isNew = insert(db, hash, expiresAtMs)
    if (isNew) insert(db, owner, expiresAtMs)
    accepted[index] = isNew || has(db, owner)
  }
  return accepted
}

/** Rows per step: some 20 ms. */
const rowsPerStep = 4_096

export function pruneSignatures(
  { db }: WriteContext,
  { now }: Parameters<SignatureStore['prune']>[0],
): number {
  return db
    .query(
      `DELETE FROM signature_use WHERE hash IN
         (SELECT hash FROM signature_use WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ${rowsPerStep})`,
    )
    .run(now).changes
}
