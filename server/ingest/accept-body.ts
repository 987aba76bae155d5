/** Accepts the events of a JSON body: a quick way for text as JSON.stringify writes it, a careful one for any other. */
import type { Issue } from '../errors.ts'
import { isDeeperThan } from '../text/json-depth.ts'
import { limits } from '../limits.ts'
import { type Accepted, overLimitIssue, rejected } from './rejected.ts'
import { exactJson } from '../text/exact-json.ts'
import { type Outline, outlineBody, sizeOver } from './outline.ts'
import { parseEvents } from './parse-events.ts'
import { mayHoldUnkeepable, takeEvent } from './take-event.ts'

const canonicalHead = /^\{(?:"publishableKey":"[^"\\]*",)?"events":\[/

export function acceptBody(text: string, siteIds: readonly string[]): Accepted {
  const { events, outline } = parseEvents(text)
  const quick = outline === null ? acceptCanonical(text, events, siteIds) : null
  if (quick !== null) return quick
  const sent = outline ?? outlineBody(text)
  if (sent === null) throw new Error('invariant: text that parses as an object has an outline')
  return acceptOutlined(text, events, sent, siteIds)
}

/**
 * Almost every client sends what JSON.stringify wrote. Then each event, written again, stands in the text where it
 * should: no number has changed, its size is known, and the text need not be walked. Null at the first event that is
 * spelled in another way, too deep or too large. The list must begin the text and end at its last bracket: then no
 * later member of the same name, which would win, can be a list.
 */
function acceptCanonical(text: string, events: unknown[], siteIds: readonly string[]): Accepted | null {
  const head = canonicalHead.exec(text)
  if (head === null) return null
  const end = text.lastIndexOf(']')
  const checkCharacters = mayHoldUnkeepable(text)
  const accepted: Accepted = { sent: events.length, records: [], positions: [], rejected: [] }
  let issues: Issue[] = []
  let at = head[0].length
  for (let i = 0; i < events.length; i++) {
    const record = takeEvent(events[i], siteIds, checkCharacters, issues)
    const json = record === null ? rewritten(events[i]) : record.json
    if (json === null || !text.startsWith(json, at) || sizeOver(json, 0, json.length) !== null) return null
    at += json.length + 1 // the comma
    if (record === null) {
      accepted.rejected.push(rejected(i, events[i], issues, json))
      issues = []
    } else {
      accepted.records.push(record)
      accepted.positions.push(i)
    }
  }
  return at === end + 1 ? accepted : null
}

/** A rejected event as JavaScript writes it; null when it is too deep to write. */
function rewritten(event: unknown): string | null {
  return isDeeperThan(event, limits.eventDepthMax) ? null : JSON.stringify(event)
}

function acceptOutlined(
  text: string,
  events: unknown[],
  outline: Outline,
  siteIds: readonly string[],
): Accepted {
  const checkCharacters = mayHoldUnkeepable(text)
  const accepted: Accepted = { sent: events.length, records: [], positions: [], rejected: [] }
  for (let i = 0; i < events.length; i++) {
    const slice = outline.events[i]
    if (slice === undefined) throw new Error('invariant: the outline has every event')
    const issues: Issue[] = slice.over === null ? [] : [overLimitIssue(slice.over)]
    const record = slice.over === null ? takeEvent(events[i], siteIds, checkCharacters, issues) : null
    const sent = (): string => text.slice(slice.start, slice.end)
    if (record === null) {
      accepted.rejected.push(rejected(i, events[i], issues, sent()))
      continue
    }
    if (!slice.isExact) record.json = exactJson(sent())
    accepted.records.push(record)
    accepted.positions.push(i)
  }
  return accepted
}
