/** `sightglass import`: stores the events of NDJSON or Parquet files; events with a known id are skipped. */
import type { Json } from '../../../db/contract/store.ts'
import { auditEntry } from '../../audit/entry.ts'
import { AppError, type Issue } from '../../errors.ts'
import { acceptEvents } from '../../ingest/accept.ts'
import { importKeyId } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { openParquetEvents } from '../../parquet/read.ts'
import type { StoreAccess } from '../../runtime/store-access.ts'
import { textOf, type Params, type WorkContext } from '../../runtime/work.ts'
import { skipValue } from '../../text/json-scan.ts'
import { command, type Noun } from '../command.ts'
import { requireOrg, withData } from '../data-command.ts'
import { orgOption } from '../options.ts'
import { oneLine, printAnswer } from '../print.ts'

const issuesShown = 20

export const imports: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'import',
      summary: 'store events from files of "export traces" or any NDJSON',
      arguments: '[FILE|DIR|-]',
      about: [
        'Events pass the same checks as at ingest. An event whose id is known is skipped, so a file may be imported again. Exit code 1 when the file is incomplete or has invalid events; its valid events are stored.',
        'DIR is a folder of Parquet files. If one of them differs from manifest.json, nothing is stored.',
        'Records in a file are not believed: a verdict of an imported event counts as reported by its sender.',
      ],
      examples: [
        'sightglass import events.ndjson',
        'sightglass export traces --data-dir old | sightglass import --data-dir new -',
        'sightglass import ./events',
      ],
      options: orgOption,
      work: { begin: beginImport, append: appendImport },
      run: (invocation) =>
        withData(invocation, 'create', async (data) => {
          const { words, values } = invocation
          const path = words[0] ?? '-'
          const parquet = path === '-' ? null : await openParquetEvents(path)
          const { orgId } = (await data.call('import begin', { org: values.org, path })) as { orgId: string }
          const sums: Sums = { lines: 0, accepted: 0, deduped: 0, rejected: 0, issues: [] }
          let promised = parquet?.isWhole ? parquet.rows : null
          for await (const batch of batches(
            parquet?.events() ?? linesOf(path),
            (count) => (promised = count),
          ))
            await append(data, orgId, batch, sums)
          const whole = promised === null ? null : promised === sums.lines
          const { lines, accepted, deduped, rejected, issues } = sums
          const answer = { orgId, lines, accepted, deduped, rejected, whole, issues }
          printAnswer(values, answer, (sum) => importText(sum, parquet !== null))
          return rejected > 0 || whole === false ? 1 : 0
        }),
    }),
  ],
}

interface Sums {
  lines: number
  accepted: number
  deduped: number
  rejected: number
  issues: Issue[] // the first 20; `index` is the line of the file, from 0
}

async function append(data: StoreAccess, orgId: string, lines: string[], sums: Sums): Promise<void> {
  const result = (await data.call('import append', { orgId, body: lines.join('\n') })) as unknown as Sums
  for (const issue of result.issues) {
    if (sums.issues.length < issuesShown)
      sums.issues.push({ ...issue, index: sums.lines + (issue.index ?? 0) })
  }
  sums.lines += lines.length
  sums.accepted += result.accepted
  sums.deduped += result.deduped
  sums.rejected += result.rejected
}

/** Batches of at most the size of an ingest request. `promised` gets the count of the last line of an export. */
async function* batches(
  lines: AsyncIterable<string>,
  promised: (count: number) => void,
): AsyncGenerator<string[]> {
  let batch: string[] = []
  let chars = 0
  for await (const rawLine of lines) {
    const line = eventOfRecorded(rawLine) ?? rawLine
    if (line.trim() === '') continue
    const end = countOf(line)
    if (end !== null) {
      promised(end)
      continue
    }
    if (batch.length === limits.eventsPerRequestMax || chars + line.length > limits.bodyBytesMax) {
      yield batch
      batch = []
      chars = 0
    }
    batch.push(line)
    chars += line.length
  }
  if (batch.length > 0) yield batch
}

/**
 * The text of the event in a line `{"event":…,"record":…}` of an export with records; null for any other line. The
 * record is not believed: whoever wrote the file may have changed it.
 */
function eventOfRecorded(line: string): string | null {
  const head = /^\s*\{\s*"event"\s*:\s*(?=\{)/.exec(line)?.[0]
  if (head === undefined) return null
  const scan = { depth: 0, isExact: true }
  const end = skipValue(line, head.length, scan)
  const separator = end < 0 ? null : /^\s*,\s*"record"\s*:\s*(?=\{)/.exec(line.slice(end, end + 100))?.[0]
  if (separator == null) return null
  const recordEnd = skipValue(line, end + separator.length, scan)
  return recordEnd >= 0 && /^\s*\}\s*$/.test(line.slice(recordEnd)) ? line.slice(head.length, end) : null
}

/** The count in `{"_end":{"count":n}}`, or null for any other line. */
function countOf(line: string): number | null {
  const count = /^\{"_end":\{"count":(\d{1,15})\}\}$/.exec(line.trim())?.[1]
  return count === undefined ? null : Number(count)
}

/**
 * Lines of a file, or of standard input for `-`, in bounded memory. Only LF ends a line, because JSON may contain other
 * line separators (U+2028). Throws when the file is unreadable, not UTF-8, or has a line above the limit of a request.
 */
async function* linesOf(path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const source = path === '-' ? Bun.stdin : Bun.file(path)
  let partialLine = ''
  try {
    for await (const bytes of source.stream()) {
      const lines = (partialLine + decoder.decode(bytes, { stream: true })).split('\n')
      partialLine = lines.pop() ?? ''
      yield* lines
      if (partialLine.length > limits.bodyBytesMax) throw new Error('a line is longer than 8 MiB')
    }
    partialLine += decoder.decode()
  } catch (error) {
    const reason = error instanceof TypeError ? 'not UTF-8' : error instanceof Error ? error.message : ''
    throw new AppError('not_found', `${path} cannot be read: ${reason}`)
  }
  if (partialLine !== '') yield partialLine
}

function importText(
  { lines, accepted, deduped, rejected, whole, issues }: Sums & { whole: boolean | null },
  isFolder: boolean,
): string {
  const text = [`Read ${lines} events: ${accepted} stored, ${deduped} already known, ${rejected} rejected.`]
  for (const { index = 0, path, message } of issues)
    text.push(oneLine(`  event ${index + 1}${path === '' ? '' : `: ${path}`} ${message}`))
  if (rejected > issues.length) text.push('  …')
  if (whole === false) text.push('The file is incomplete: its last line has a different count.')
  if (whole === null && isFolder) text.push('The folder has no manifest.json, so it may be incomplete.')
  else if (whole === null) text.push('The file has no count in its last line, so it may be incomplete.')
  return text.join('\n')
}

/** One audit entry for the whole import, before its first batch. */
async function beginImport({ store, clock }: WorkContext, params: Params): Promise<Json> {
  const org = await requireOrg(store, textOf(params, 'org'))
  const act = { action: 'traces.imported', target: org.id, metadata: { file: textOf(params, 'path') } }
  await store.audit.append(auditEntry({ orgId: org.id, actor: 'cli' }, act, clock.now()))
  return { orgId: org.id }
}

async function appendImport({ store, clock }: WorkContext, params: Params): Promise<Json> {
  const { records, positions, rejected } = acceptEvents(textOf(params, 'body'), 'application/x-ndjson', [])
  const issues: Issue[] = rejected.flatMap((rejection) => rejection.issues.slice(0, 1))
  let accepted = 0
  let deduped = 0
  let beyondLimits = 0
  if (records.length > 0) {
    const orgId = textOf(params, 'orgId')
    const receivedAtMs = clock.now()
    const batch = { orgId, keyId: importKeyId, door: 'import' as const, receivedAtMs, events: records }
    const result = await store.events.append(batch)
    accepted = result.accepted
    deduped = result.deduped
    beyondLimits = result.rejected.length
    for (const { index, member } of result.rejected) {
      const message = 'has more distinct values than an organization may store'
      issues.push({ path: member, code: 'too_many', message, index: positions[index] ?? 0 })
    }
  }
  return {
    accepted,
    deduped,
    rejected: rejected.length + beyondLimits,
    issues: issues.slice(0, issuesShown).map((issue) => ({ ...issue })),
  }
}
