/** Turns what ingest refused into samples for the ingest-health page (contract §4: the newest are kept, cut). */
import type { ApiKey, RejectedSample } from '../../db/contract/store.ts'
import type { AppError } from '../errors.ts'
import { limits } from '../limits.ts'
import type { Rejected } from './rejected.ts'
import { cutBytes } from '../text/text.ts'

type Sender = Pick<ApiKey, 'id' | 'orgId'>

/** One sample for each rejected event, told by the first thing that was wrong with it. */
export function eventSamples(key: Sender, atMs: number, rejected: readonly Rejected[]): RejectedSample[] {
  const samples: RejectedSample[] = []
  for (const { issues, excerpt } of rejected) {
    const issue = issues[0]
    if (issue === undefined) continue
    const { code, message, path } = issue
    samples.push({ orgId: key.orgId, keyId: key.id, atMs, code, message, path, excerpt: shown(excerpt) })
  }
  return samples
}

/** The sample of a request that was refused as a whole; `text` is '' when it could not be read as text. */
export function requestSample(key: Sender, atMs: number, error: AppError, text: string): RejectedSample {
  const { code, message } = error
  const path = error.details.issues?.[0]?.path ?? ''
  return { orgId: key.orgId, keyId: key.id, atMs, code, message, path, excerpt: shown(text) }
}

/** At most 4 KiB and whole characters. A raw NUL, possible where the text is no JSON, would end it for many tools. */
function shown(text: string): string {
  const start = text.slice(0, limits.rejectedExcerptBytesMax + 1).replaceAll('\0', '\u2400')
  return cutBytes(start, limits.rejectedExcerptBytesMax).toWellFormed()
}
