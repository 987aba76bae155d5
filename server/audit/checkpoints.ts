/**
 * The file `audit-checkpoints` beside the database: once a day the signed head of every chain, one a line, only ever
 * added to. Who cuts a chain and all heads in the folder alike must also take lines away that the log repeats.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { AuditAnchor, Store } from '../../db/store.ts'
import type { Log } from '../log.ts'
import { isSoundHead, signHead, type SignedHead } from './signed-head.ts'
import { readSigningKey, type SigningKey } from './signing-key.ts'

const fileName = 'audit-checkpoints'

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
  const known = new Map(readLines(dataDir).map(({ head }) => [head?.orgId, head?.hash]))
  const moved = Object.entries(await store.audit.heads())
    .filter(([orgId, head]) => known.get(orgId) !== head.hash)
    .map(([orgId, head]) => signHead(key, orgId, head, now))
  if (moved.length === 0) return 0
  appendCheckpoints(dataDir, moved)
  for (const head of moved) log.info('audit_checkpoint', { ...head })
  return moved.length
}

/** On disk when it returns. */
export function appendCheckpoints(dataDir: string, heads: SignedHead[]): void {
  const file = openSync(join(dataDir, fileName), 'a', 0o600)
  try {
    writeSync(file, heads.map((head) => `${JSON.stringify(head)}\n`).join(''))
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

export interface Checkpoints {
  anchors: AuditAnchor[]
  newest: string | null // when the last sound line was written
  unsound: { line: number; message: string }[]
}

/** Reads the file against the appliance's own key; changes nothing. A last line cut by a crash is no fault. */
export function readCheckpoints(dataDir: string): Checkpoints {
  const ours = readSigningKey(dataDir)?.publicKey ?? null
  const found: Checkpoints = { anchors: [], newest: null, unsound: [] }
  for (const { line, head, isLast } of readLines(dataDir)) {
    const unsound = (message: string) => found.unsound.push({ line, message })
    if (head === null) {
      if (!isLast) unsound('is not a checkpoint')
    } else if (ours !== null && head.key !== ours) unsound('is signed by another key than audit-signing.key')
    else if (!isSoundHead(head)) unsound('was not signed like this')
    else {
      const { orgId, count, hash, at } = head
      found.anchors.push({ orgId, count, hash, source: `line ${line} of the file ${fileName}` })
      found.newest = at
    }
  }
  return found
}

function readLines(dataDir: string): { line: number; head: SignedHead | null; isLast: boolean }[] {
  const path = join(dataDir, fileName)
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n')
  const last = lines.pop() ?? ''
  const whole = lines.map((text, index) => ({ line: index + 1, head: parseHead(text), isLast: false }))
  return last === '' ? whole : [...whole, { line: lines.length + 1, head: null, isLast: true }]
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
