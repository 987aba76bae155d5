/**
 * The append-only file `audit-checkpoints` in the data folder: daily the signed head of every chain, one per line.
 * The log repeats each line, so truncating a chain and every head in the folder alike still contradicts the log.
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
  type SignedHead,
  type SigningKey,
} from './signing.ts'
import { isoTime } from '../clock.ts'
import { clockToleranceMs } from '../system/clock-guard.ts'
import { ruleOf, type RetentionRule } from '../operations/retention/expire-all.ts'
import { auditEntry } from './entry.ts'
import type { AuditAnchor, Store } from '../../db/contract/store.ts'
import type { Log } from '../log.ts'
import type { KeyRing } from '../system/key-ring.ts'

interface CheckpointServices {
  store: Pick<Store, 'audit'>
  key: SigningKey
  dataDir: string
  log: Log
}

/** Signs the heads that changed since the last checkpoint of their chain and writes them to the file and the log. */
export async function writeCheckpoints(
  { store, key, dataDir, log }: CheckpointServices,
  now: number,
): Promise<number> {
  const path = join(dataDir, checkpointsFileName)
  const { lines } = existsSync(path) ? readFile(path) : noLines
  const known = new Map(lines.map((head) => [head?.orgId, head?.hash]))
  const moved = Object.entries(await store.audit.heads())
    .filter(([orgId, head]) => known.get(orgId) !== head.hash)
    .map(([orgId, head]) => signHead(key, orgId, head, now))
  if (moved.length === 0) return 0
  appendCheckpoints(dataDir, moved)
  for (const head of moved) log.info('audit_checkpoint', { ...head })
  return moved.length
}

/**
 * Durable when it returns. Removes an incomplete last line first: the next line would be appended to it and both
 * would be lost.
 */
function appendCheckpoints(dataDir: string, heads: SignedHead[]): void {
  const path = join(dataDir, checkpointsFileName)
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
  if (isNew) syncFolder(dataDir)
}

export interface Checkpoints {
  exists: boolean
  anchors: AuditAnchor[]
  newest: string | null // time of the last valid line
  unsound: { line: number; message: string }[]
  torn: { line: number; bytes: number } | null // an incomplete last line
}

/** Verifies the file with the appliance's own keys, without writing. An incomplete last line is not a fault. */
export function readCheckpoints(dataDir: string, ring: KeyRing | null = null): Checkpoints {
  const path = join(dataDir, checkpointsFileName)
  const exists = existsSync(path)
  const { lines, torn } = exists ? readFile(path) : noLines
  const ours = trustedKeys(dataDir, ring)
  const found: Checkpoints = { exists, anchors: [], newest: null, unsound: [], torn }
  for (const [index, head] of lines.entries()) {
    const line = index + 1
    const unsound = (message: string) => found.unsound.push({ line, message })
    if (head === null) unsound('is not a checkpoint')
    else if (ours.length > 0 && !ours.includes(head.key))
      unsound('is signed by a key other than audit-signing.key')
    else if (!isSoundHead(head)) unsound('has an invalid signature')
    else {
      const { orgId, count, hash, at } = head
      found.anchors.push({ orgId, count, hash, source: `line ${line} of the file ${checkpointsFileName}` })
      found.newest = at
    }
  }
  return found
}

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
    const { orgId, count, hash, at, key, signature } = JSON.parse(text) as Record<string, unknown>
    if (typeof count !== 'number') return null
    const texts = [orgId, hash, at, key, signature]
    if (!texts.every((each) => typeof each === 'string')) return null
    return { orgId, count, hash, at, key, signature } as SignedHead
  } catch {
    return null
  }
}

/**
 * Retention of the audit trail: a signed trim, durable in the file and in the log first, covers the deleted entries.
 */
const dayMs = 24 * 3_600_000

/** A pause between steps, so that other writes do not wait. */
const pauseMs = 20

interface TrimServices {
  store: Pick<Store, 'audit' | 'retention'>
  key: SigningKey
  dataDir: string
  rule: RetentionRule
  log: Log
}

/** Trims every chain, including those of the appliance and of deleted organizations. */
export async function trimAll(services: TrimServices, now: number, ending: AbortSignal): Promise<void> {
  const { store, rule } = services
  for (const orgId of Object.keys(await store.audit.heads())) {
    const { auditDays } = await ruleOf(store, orgId, rule)
    if (auditDays !== null) await trimChain(services, orgId, now - auditDays * dayMs, now)
    await sweep(store, orgId, ending) // continues a trim that an earlier process did not finish
  }
}

async function trimChain(
  { store, key, dataDir, log }: TrimServices,
  orgId: string,
  beforeMs: number,
  now: number,
): Promise<void> {
  const point = await store.audit.trimPoint({ orgId, beforeMs, untilMs: now + clockToleranceMs })
  if (point === null) return
  const trim = signTrim(key, orgId, point, now)
  appendCheckpoints(dataDir, [signHead(key, orgId, point, now)])
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
