/**
 * The file `audit-checkpoints` beside the database: once a day the signed head of every chain, one a line, only ever
 * added to. Who cuts a chain and all heads in the folder alike must also take lines away that the log repeats.
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
  readSigningKey,
  signHead,
  signTrim,
  type SignedHead,
  type SigningKey,
} from './signing.ts'
import { isoTime } from '../clock.ts'
import { clockToleranceMs } from '../system/clock-guard.ts'
import { ruleOf, type RetentionRule } from '../operations/retention/expire-all.ts'
import { auditEntry } from './entry.ts'
import type { AuditAnchor, Store } from '../../db/contract/store.ts'
import type { Log } from '../log.ts'

interface CheckpointParts {
  store: Pick<Store, 'audit'>
  key: SigningKey
  dataDir: string
  log: Log
}

/** Signs the heads that moved since the last line of their chain, into the file and into the log. */
export async function writeCheckpoints(
  { store, key, dataDir, log }: CheckpointParts,
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
 * On disk when it returns. A last line that a crash cut off is removed first, or the next one would be added to it and
 * both be lost.
 */
export function appendCheckpoints(dataDir: string, heads: SignedHead[]): void {
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
  newest: string | null // when the last sound line was written
  unsound: { line: number; message: string }[]
  torn: { line: number; bytes: number } | null // a last line that was not written to its end
}

/** Reads the file against the appliance's own key; changes nothing. A last line cut off by a crash is no fault. */
export function readCheckpoints(dataDir: string): Checkpoints {
  const path = join(dataDir, checkpointsFileName)
  const exists = existsSync(path)
  const { lines, torn } = exists ? readFile(path) : noLines
  const ours = readSigningKey(dataDir)?.publicKey ?? null
  const found: Checkpoints = { exists, anchors: [], newest: null, unsound: [], torn }
  for (const [index, head] of lines.entries()) {
    const line = index + 1
    const unsound = (message: string) => found.unsound.push({ line, message })
    if (head === null) unsound('is not a checkpoint')
    else if (ours !== null && head.key !== ours) unsound('is signed by a key other than audit-signing.key')
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
  wholeBytes: number // of the lines before a torn one
  torn: Checkpoints['torn']
  unended: boolean // the last line is whole but for its line feed
}

const noLines: CheckpointFile = { lines: [], wholeBytes: 0, torn: null, unended: false }

/** Only what follows the last line feed can be torn: each append ends with one, and goes behind another. */
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
 * Retention of the audit trail: entries older than an organization keeps them are taken out behind a signed trim.
 * What is signed is on disk and in the log first, so that nothing can go without a word about it.
 */
const dayMs = 24 * 3_600_000

/** Between two steps others have the writer to themselves. */
const pauseMs = 20

interface TrimParts {
  store: Pick<Store, 'audit' | 'retention'>
  key: SigningKey
  dataDir: string
  rule: RetentionRule
  log: Log
}

/** Every chain, that of the appliance and those of deleted organizations too. */
export async function trimAll(parts: TrimParts, now: number, ending: AbortSignal): Promise<void> {
  const { store, rule } = parts
  for (const orgId of Object.keys(await store.audit.heads())) {
    const { auditDays } = await ruleOf(store, orgId, rule)
    if (auditDays !== null) await trimChain(parts, orgId, now - auditDays * dayMs, now)
    await sweep(store, orgId, ending) // of an earlier trim too, whose process ended before its end
  }
}

async function trimChain(
  { store, key, dataDir, log }: TrimParts,
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
