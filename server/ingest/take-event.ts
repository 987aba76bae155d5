/** Checks one parsed event as a whole: its members, the sites of the key, its depth and its characters. */
import type { EventRecord } from '../../db/contract/store.ts'
import type { Issue } from '../errors.ts'
import { isDeeperThan } from '../text/json-depth.ts'
import { limits } from '../limits.ts'
import { checkEvent } from './check-event.ts'
import { overLimitIssue } from './rejected.ts'

/** In a text without these, no value can hold a NUL or half of a surrogate pair: UTF-8 cannot carry them unescaped. */
const maybeUnkeepable = /\\u(?:0000|[dD][89a-fA-F])/

/** The same in what JSON.stringify writes: it escapes NUL and lone surrogates, but never a whole pair. */
const unkeepable = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/

const plainName = /^[A-Za-z0-9_.-]{1,64}$/

/** Whether events parsed from this text need the check for characters that we do not keep. */
export function mayHoldUnkeepable(text: string): boolean {
  return text.includes('\\u') && maybeUnkeepable.test(text)
}

/**
 * The record of an event that may be stored, or null and what is wrong in `issues`. Its `json` is the event as
 * JavaScript writes it; the caller compares that with the text sent.
 */
export function takeEvent(
  event: unknown,
  siteIds: readonly string[],
  checkCharacters: boolean,
  issues: Issue[],
): EventRecord | null {
  const record = checkEvent(event, issues)
  if (record === null) return null
  if (isDeeperThan(event, limits.eventDepthMax)) {
    issues.push(overLimitIssue('too_deep'))
    return null
  }
  record.json = JSON.stringify(event)
  if (checkCharacters && unkeepable.test(record.json)) {
    const message = 'must not hold NUL or half of a surrogate pair'
    issues.push({ path: unkeepableMember(event), code: 'wrong_format', message })
    return null
  }
  // Last, so that "all of them wrong_site" means that nothing else was wrong.
  if (siteIds.length > 0 && !siteIds.includes(record.siteId)) {
    issues.push({ path: 'siteId', code: 'wrong_site', message: 'is not a site of this ingest key' })
    return null
  }
  return record
}

/** The first member with such a character, or '' when it is in a name: hostile names are not echoed. */
function unkeepableMember(event: unknown): string {
  for (const [name, value] of Object.entries(event as object)) {
    if (unkeepable.test(JSON.stringify(name))) return ''
    if (unkeepable.test(JSON.stringify(value))) return plainName.test(name) ? name : ''
  }
  return ''
}
