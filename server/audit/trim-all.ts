/**
 * Retention of the audit trail: entries older than an organization keeps them are taken out behind a signed trim.
 * What is signed is on disk and in the log first, so that nothing can go without a word about it.
 */
import type { Store } from '../../db/contract/store.ts'
import { isoTime } from '../clock.ts'
import { clockToleranceMs } from '../system/clock-guard.ts'
import type { Log } from '../log.ts'
import { ruleOf, type RetentionRule } from '../operations/retention/expire-all.ts'
import { appendCheckpoints } from './checkpoints.ts'
import { auditEntry } from './entry.ts'
import { signHead, signTrim } from './signed-head.ts'
import type { SigningKey } from './signing-key.ts'

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
