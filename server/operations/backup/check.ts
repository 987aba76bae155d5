/**
 * Verifies a backup: every byte, the whole database, and that it contains what its manifest says. Unpacks its
 * database.
 */
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { databaseFiles } from '../../../db/open.ts'
import { StoreError } from '../../../db/contract/errors.ts'
import { AppError } from '../../errors.ts'
import { passphraseForms } from '../../text/secret-text.ts'
import { decrypted, deriveKey, digestFile, keyOf, piecesOf, writePieces } from './body.ts'
import { keyFileNames, readManifest, type Encryption, type KeyFiles, type Manifest } from './manifest.ts'
import type { DatabaseAdmin, DatabaseCopies } from '../../../db/contract/admin.ts'
import type { CopyReport, DatabaseFacts, Inspection } from '../../../db/contract/operations.ts'
import type { AuditAnchor } from '../../../db/contract/store.ts'

interface BackupVerdict {
  ok: boolean
  path: string
  bytes: number
  sha256: string
  manifest: Manifest
  /** False for an encrypted backup without its passphrase: only its bytes were compared. */
  opened: boolean
  problems: string[]
}

/** Throws when the file is not a backup. Decrypts into a temporary folder and writes nothing beside the file. */
export async function checkBackup(path: string, passphrase: string | null): Promise<BackupVerdict> {
  const manifest = await readManifest(path)
  const { bodySha256, bytes, sha256 } = await digestFile(path, manifest.bodyBytes)
  const verdict = { path, bytes, sha256, manifest }
  if (bodySha256 !== manifest.bodySha256) {
    return { ...verdict, ok: false, opened: false, problems: ['its bytes differ from those written'] }
  }
  if (manifest.encryption === null) {
    const problems = await contentProblems(path, manifest)
    return { ...verdict, ok: problems.length === 0, opened: true, problems }
  }
  if (passphrase === null) return { ...verdict, ok: true, opened: false, problems: [] }
  const folder = await mkdtemp(join(tmpdir(), 'sightglass-verify-'))
  try {
    const { database } = await unpackBackup(path, manifest, folder, passphrase)
    const problems = await contentProblems(database, manifest)
    return { ...verdict, ok: problems.length === 0, opened: true, problems }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { ...verdict, ok: false, opened: false, problems: [error.message] }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The problems of the database at `path`, compared with the manifest. */
export async function contentProblems(path: string, manifest: Manifest): Promise<string[]> {
  try {
    const anchors = anchorsOf(manifest.auditHeads, "the backup's manifest")
    const inspection = await databaseFiles.inspect({ path, anchors })
    return [...faultsOf(inspection), ...differences(inspection.facts, { before: manifest, after: manifest })]
  } catch (error) {
    if (error instanceof StoreError) return [error.message]
    throw error
  }
}

/** Throws for a database that other tools back up, and says which. */
export function copiesOf({ backups }: Pick<DatabaseAdmin, 'backups'>): DatabaseCopies {
  if (backups.by === 'copy') return backups
  throw new AppError('conflict', 'Other tools back up and restore this database.', {
    hint: `${backups.backUp}; ${backups.restore}`,
  })
}

/** The audit heads of a database, which the chains of its copy must contain. */
export function anchorsOf(heads: DatabaseFacts['auditHeads'], source: string): AuditAnchor[] {
  return Object.entries(heads).map(([orgId, head]) => ({ orgId, ...head, source }))
}

/** The faults inside a database. */
export function faultsOf({ faults, audit }: Inspection): string[] {
  const chains = audit.faults.map(({ orgId, position, kind, message }) => {
    return `audit chain of ${orgId}, position ${position}, ${kind}: ${message}`
  })
  return [...faults, ...chains]
}

/** The differences between a copy and its source. */
export function differences(
  copy: DatabaseFacts,
  { before: factsBefore, after: factsAfter }: CopyReport,
): string[] {
  const problems: string[] = []
  const checkRange = (label: string, value: number, low: number, high: number) => {
    if (value < Math.min(low, high) || value > Math.max(low, high))
      problems.push(`${label}: ${value} in the copy, ${low} before and ${high} after in the database`)
  }
  checkRange('schema', copy.schema, factsBefore.schema, factsAfter.schema)
  for (const factName of ['events', 'orgs', 'accounts', 'keys'] as const)
    checkRange(factName, copy[factName], factsBefore[factName], factsAfter[factName])
  for (const [orgId, { count }] of Object.entries(factsAfter.auditHeads)) {
    const inCopy = copy.auditHeads[orgId]?.count ?? 0
    checkRange(`audit entries of ${orgId}`, inCopy, factsBefore.auditHeads[orgId]?.count ?? 0, count)
  }
  return problems
}

const keyFilesBytesMax = 64 * 1024

interface Unpacked {
  database: string // path
  keyFiles: KeyFiles
}

/** Throws when the passphrase is wrong or anything was altered; the caller deletes the folder. */
export async function unpackBackup(
  path: string,
  manifest: Manifest,
  folder: string,
  passphrase: string | null,
): Promise<Unpacked> {
  const { bodyBytes, databaseBytes, databaseSha256, encryption } = manifest
  const body = piecesOf(path, bodyBytes)
  const source =
    encryption === null
      ? { pieces: body, keyFiles: {} }
      : await splitKeyFiles(
          decrypted(body, await findKey(path, bodyBytes, encryption, passphrase), encryption),
        )
  const database = databaseFiles.pathIn(folder)
  const file = await open(database, 'wx', 0o600)
  try {
    const { bytes, sha256 } = await writePieces(file, source.pieces)
    if (bytes !== databaseBytes || sha256 !== databaseSha256) {
      throw new AppError('conflict', 'The database in the backup was altered.')
    }
  } finally {
    await file.close()
  }
  return { database, keyFiles: source.keyFiles }
}

/** The key that decrypts the first part of the body; earlier releases derived it from other forms of the passphrase. */
async function findKey(
  path: string,
  bodyBytes: number,
  encryption: Encryption,
  passphrase: string | null,
): Promise<Buffer> {
  if (passphrase === null) {
    throw new AppError('conflict', 'This backup is encrypted. Provide its passphrase.', {
      hint: 'set SIGHTGLASS_BACKUP_PASSPHRASE or SIGHTGLASS_BACKUP_PASSPHRASE_FILE',
    })
  }
  for (const form of passphraseForms(passphrase)) {
    const key = await deriveKey(form, encryption)
    if (await decryptsStart(path, bodyBytes, key, encryption)) return key
  }
  return keyOf(passphrase, encryption) // does not decrypt, which the reader of the body reports
}

async function decryptsStart(
  path: string,
  bodyBytes: number,
  key: Buffer,
  encryption: Encryption,
): Promise<boolean> {
  const clear = decrypted(piecesOf(path, bodyBytes), key, encryption)
  try {
    await clear.next()
    return true
  } catch (error) {
    if (error instanceof AppError) return false
    throw error
  } finally {
    await clear.return(undefined)
  }
}

/** The clear text begins with one line of JSON; the rest is the database. */
async function splitKeyFiles(
  clear: AsyncGenerator<Buffer>,
): Promise<{ pieces: AsyncIterable<Buffer>; keyFiles: KeyFiles }> {
  let head = Buffer.alloc(0)
  let end = -1
  while (end < 0 && head.length < keyFilesBytesMax) {
    const { value, done: isDone } = await clear.next()
    if (isDone) break
    head = Buffer.concat([head, value])
    end = head.indexOf(0x0a)
  }
  if (end < 0) throw new AppError('conflict', 'The backup is corrupt: its key files are missing.')
  const keyTexts = JSON.parse(head.subarray(0, end).toString()) as { [name: string]: unknown }
  const keyFiles: KeyFiles = {}
  for (const name of keyFileNames) {
    const text = keyTexts[name]
    if (typeof text === 'string') keyFiles[name] = text
  }
  const firstPiece = head.subarray(end + 1)
  const pieces = (async function* () {
    yield firstPiece
    yield* clear
  })()
  return { pieces, keyFiles }
}
