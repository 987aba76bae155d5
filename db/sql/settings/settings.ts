/** What the store keeps for the whole appliance: secrets, the check of its key ring, and the evidence pack. */
import { eq } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import { appendAudit } from '../audit/append.ts'
import { columnsOf, type Database } from '../database.ts'
import { storeSecret } from '../identity/schema.ts'
import type { EvidenceStore } from '../../contract/store.ts'
import type { StoredPack } from '../../contract/operations.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'

export const settingWriteVerbs = {
  'keyCheck.agree': agreeOnKeys,
  'keyCheck.replace': replaceKeyCheck,
  'evidence.replace': replacePack,
  secret,
}

export const settingReadVerbs = {
  'evidence.digest': packDigest,
  'evidence.read': ({ db }: ReadContext) => storedPack(db),
  encryptedSecrets,
}

/** Secrets of this store, each made once and never changed. */
const secretBytes = 32

function secret({ orm }: WriteContext, name: string): string {
  orm
    .insert(storeSecret)
    .values({ name, value: crypto.getRandomValues(new Uint8Array(secretBytes)).toHex() })
    .onConflictDoNothing()
    .run()
  const found = orm.select().from(storeSecret).where(eq(storeSecret.name, name)).get()
  if (found === undefined) throw new StoreError('internal', `the secret ${name} was not stored`)
  return found.value
}

const keyCheckName = 'key ring'

function agreeOnKeys({ db }: WriteContext, value: string): string {
  db.query('INSERT INTO key_check (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING').run(
    keyCheckName,
    value,
  )
  const stored = db.query<{ value: string }, [string]>('SELECT value FROM key_check WHERE name = ?')
  return stored.get(keyCheckName)!.value
}

function replaceKeyCheck({ db }: WriteContext, value: string | null): void {
  db.query('DELETE FROM key_check WHERE name = ?').run(keyCheckName)
  if (value !== null) db.query('INSERT INTO key_check (name, value) VALUES (?, ?)').run(keyCheckName, value)
}

const packName = 'current'

function replacePack({ db }: WriteContext, { pack, audit }: Parameters<EvidenceStore['replace']>[0]): void {
  db.query('DELETE FROM evidence_pack WHERE name = ?').run(packName)
  if (pack !== null)
    db.query(
      `INSERT INTO evidence_pack (name, digest, pack, signed_by, stored_by, stored_at_ms) VALUES (?, ?, ?, ?, ?, ?)`,
    ).run(packName, pack.digest, pack.pack, pack.signedBy, pack.storedBy, pack.storedAtMs)
  appendAudit(db, audit)
}

/** The evidence pack that replaces the bundled one. */
export function storedPack(db: Database): StoredPack | null {
  return db
    .query<StoredPack, []>(
      `SELECT digest, pack, signed_by AS "signedBy", stored_by AS "storedBy", stored_at_ms AS "storedAtMs"
       FROM evidence_pack WHERE name = 'current'`,
    )
    .get()
}

function packDigest({ db }: ReadContext): string | null {
  const row = db.query<{ digest: string }, [string]>('SELECT digest FROM evidence_pack WHERE name = ?')
  return row.get(packName)?.digest ?? null
}

/** Encrypted secrets in any table, which need the appliance's key. */
function encryptedSecrets({ db }: ReadContext): number {
  const columns = columnsOf(db).filter(({ column }) => column.startsWith('sealed_'))
  const counts = columns.map(({ table, column }) => {
    const sql = `SELECT count(*) AS n FROM "${table}" WHERE "${column}" IS NOT NULL`
    return db.query<{ n: number }, []>(sql).get()?.n ?? 0
  })
  return counts.reduce((sum, n) => sum + n, 0)
}
