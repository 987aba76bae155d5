/**
 * Checkpoints: daily the signed head of every chain, in the append-only file `audit-checkpoints` of the data folder, or
 * in a table of a database that nodes share. The log repeats each one, so truncating a chain and every stored head
 * alike still contradicts the log.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { syncFolder } from '../../db/rules/durable-files.ts'
import {
  checkpointsFileName,
  isSoundHead,
  signHead,
  signTrim,
  trustedKeys,
  type SigningKey,
} from './signing.ts'
import { isoTime } from '../clock.ts'
import { clockToleranceMs } from '../system/clock-guard.ts'
import { forEachOrg, kindsOfOne } from '../system/steps.ts'
import { ruleOf, type RetentionRule } from '../system/retention-rule.ts'
import { auditEntry } from './entry.ts'
import type { AuditAnchor, AuditCheckpoint, SignedHead, Store } from '../../db/contract/store.ts'
import type { Log } from '../log.ts'
import type { KeyRing } from '../system/key-ring.ts'
import { dayMs } from '../../db/contract/units.ts'

/** What signs the trail and stores its checkpoints. */
export interface TrailServices {
  store: Pick<Store, 'audit'>
  key: SigningKey
  /** Of the file. Null: nodes share the database and have no folder in common, so it has the checkpoints. */
  folder: string | null
  log: Log
}

/** Signs the heads that changed since the last checkpoint of their chain, stores them and writes them to the log. */
export async function writeCheckpoints(trail: TrailServices, now: number): Promise<number> {
  const { store, key, folder, log } = trail
  const knownHashes = folder === null ? null : newestInFile(folder)
  const moved = Object.entries(await store.audit.heads())
    .filter(([orgId, head]) => knownHashes?.get(orgId) !== head.hash)
    .map(([orgId, head]) => signHead(key, orgId, head, now))
  const stored = await storeCheckpoints(trail, moved)
  for (const head of stored) log.info('audit_checkpoint', { ...head })
  return stored.length
}

function newestInFile(folder: string): Map<string | undefined, string | undefined> {
  const path = join(folder, checkpointsFileName)
  const { lines } = existsSync(path) ? readFile(path) : noLines
  return new Map(lines.map((head) => [head?.orgId, head?.hash]))
}

/** Durable when it resolves. Returns the heads that were stored: the database has some of them already. */
async function storeCheckpoints(
  { store, folder }: Pick<TrailServices, 'store' | 'folder'>,
  heads: SignedHead[],
): Promise<SignedHead[]> {
  if (heads.length === 0) return []
  if (folder === null) return store.audit.addCheckpoints(heads)
  appendCheckpoints(folder, heads)
  await store.audit.noteCheckpoints(heads.length) // after the file: it never has fewer than the database knows of
  return heads
}

/**
 * Durable when it returns. Removes an incomplete last line first: the next line would be appended to it and both
 * would be lost.
 */
function appendCheckpoints(folder: string, heads: SignedHead[]): void {
  const path = join(folder, checkpointsFileName)
  const isNew = !existsSync(path)
  const { wholeBytes, torn, unended } = isNew ? noLines : readFile(path)
  const file = openSync(path, isNew ? 'ax' : 'a', 0o600)
  try {
    if (torn !== null) ftruncateSync(file, wholeBytes)
    const lines = heads.map((head) => `${JSON.stringify(head)}\n`).join('')
    writeFileSync(file, `${unended ? '\n' : ''}${lines}`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  if (isNew) syncFolder(folder)
}

interface Checkpoints {
  exists: boolean
  anchors: AuditAnchor[]
  newest: string | null // time of the last valid line
  unsound: UnsoundCheckpoint[]
  torn: { line: number; bytes: number } | null // an incomplete last line
}

export interface UnsoundCheckpoint {
  line: number // of the file, or the number in the database
  place: string // the same in words
  message: string
}

/**
 * Verifies the file and the checkpoints of the database with the appliance's own keys, without writing. An incomplete
 * last line is not a fault.
 */
export function readCheckpoints(
  dataDir: string,
  ring: KeyRing | null = null,
  stored: readonly AuditCheckpoint[] = [],
): Checkpoints {
  const path = join(dataDir, checkpointsFileName)
  const exists = existsSync(path)
  const { lines, torn } = exists ? readFile(path) : noLines
  const ownKeys = trustedKeys(dataDir, ring)
  const checkpoints: Checkpoints = { exists, anchors: [], newest: null, unsound: [], torn }
  const read = (head: SignedHead | null, line: number, place: string): void => {
    const unsound = (message: string) => checkpoints.unsound.push({ line, place, message })
    if (head === null) unsound('is not a checkpoint')
    else if (ownKeys.length > 0 && !ownKeys.includes(head.key))
      unsound('is signed by a key that is neither audit-signing.key nor in the key ring')
    else if (!isSoundHead(head)) unsound('has an invalid signature')
    else {
      const { orgId, count, hash, at: signedAt } = head
      checkpoints.anchors.push({ orgId, count, hash, source: place })
      if (checkpoints.newest === null || signedAt > checkpoints.newest) checkpoints.newest = signedAt
    }
  }
  for (const [index, head] of lines.entries())
    read(head, index + 1, `line ${index + 1} of the file ${checkpointsFileName}`)
  let next = 1
  for (const { seq, ...head } of stored) {
    const missing = (line: number) => ({ line, place: inDatabase(line), message: 'is missing' })
    if (seq > next) checkpoints.unsound.push(missing(next))
    next = seq + 1
    read(head, seq, inDatabase(seq))
  }
  return checkpoints
}

/** Complete lines of the file, whatever they contain. */
export function countCheckpoints(dataDir: string): number {
  const path = join(dataDir, checkpointsFileName)
  return existsSync(path) ? readFile(path).lines.length : 0
}

const inDatabase = (seq: number): string => `checkpoint ${seq} of the database`

interface CheckpointFile {
  lines: (SignedHead | null)[] // null: not a checkpoint
  wholeBytes: number // of the complete lines
  torn: Checkpoints['torn']
  unended: boolean // the last line lacks only its line feed
}

const noLines: CheckpointFile = { lines: [], wholeBytes: 0, torn: null, unended: false }

/** Only the text after the last line feed can be incomplete, because every append ends with one. */
function readFile(path: string): CheckpointFile {
  const bytes = readFileSync(path)
  const wholeBytes = bytes.lastIndexOf(0x0a) + 1
  const texts = bytes.subarray(0, wholeBytes).toString('utf8').split('\n').slice(0, -1)
  const lines = texts.map(parseHead)
  if (wholeBytes === bytes.length) return { lines, wholeBytes, torn: null, unended: false }
  const last = parseHead(bytes.subarray(wholeBytes).toString('utf8'))
  if (last !== null) return { lines: [...lines, last], wholeBytes, torn: null, unended: true }
  const torn = { line: lines.length + 1, bytes: bytes.length - wholeBytes }
  return { lines, wholeBytes, torn, unended: false }
}

function parseHead(text: string): SignedHead | null {
  try {
    const { orgId, count, hash, at: signedAt, key, signature } = JSON.parse(text) as Record<string, unknown>
    if (typeof count !== 'number') return null
    const texts = [orgId, hash, signedAt, key, signature]
    if (!texts.every((field) => typeof field === 'string')) return null
    return { orgId, count, hash, at: signedAt, key, signature } as SignedHead
  } catch {
    return null
  }
}

// Retention of the audit trail: a signed trim, stored as a checkpoint and in the log first, covers the deleted entries.

/** A pause between steps, so that other writes do not wait. */
const pauseMs = 20

interface TrimServices extends TrailServices {
  store: Pick<Store, 'audit' | 'retention'>
  rule: RetentionRule
}

/**
 * Trims every chain, including those of the appliance and of deleted organizations. Throws at its end what failed of
 * one of them.
 */
export async function trimAll(services: TrimServices, now: number, ending: AbortSignal): Promise<void> {
  const { store, rule } = services
  const trim = async (orgId: string): Promise<void> => {
    const { auditDays } = await ruleOf(store, orgId, rule)
    if (auditDays !== null) await trimChain(services, orgId, now - auditDays * dayMs, now)
    await sweep(store, orgId, ending) // continues a trim that an earlier process did not finish
  }
  const orgIds = Object.keys(await store.audit.heads())
  const failure = await forEachOrg(orgIds, trim, [...kindsOfOne, 'conflict']) // of a chain; no lease is held
  if (failure !== null) throw failure
}

async function trimChain(
  { store, key, folder, log }: TrimServices,
  orgId: string,
  beforeMs: number,
  now: number,
): Promise<void> {
  const point = await store.audit.trimPoint({ orgId, beforeMs, untilMs: now + clockToleranceMs })
  if (point === null) return
  const trim = signTrim(key, orgId, point, now)
  await storeCheckpoints({ store, folder }, [signHead(key, orgId, point, now)])
  log.info('audit_trim', { ...trim })
  const metadata = { olderThan: isoTime(beforeMs), through: point.count, hash: point.hash }
  const act = { action: 'audit.trimmed', target: orgId, metadata }
  await store.audit.trim({ trim, audit: auditEntry({ orgId, actor: 'system' }, act, now) })
}

async function sweep({ audit }: Pick<Store, 'audit'>, orgId: string, ending: AbortSignal): Promise<void> {
  while (!(await audit.sweep(orgId)).done) {
    await Bun.sleep(pauseMs)
    ending.throwIfAborted()
  }
}
