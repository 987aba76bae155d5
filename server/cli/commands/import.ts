/** `sightglass import`: takes the events of an NDJSON file through the checks of ingest; known ids are left alone. */
import type { Invocation } from '../config.ts'
import type { Issue } from '../../errors.ts'
import { limits } from '../../limits.ts'
import { dataPlace } from './data-verbs.ts'
import { openData, type DataAccess } from '../../runtime/store-access.ts'
import { issuesShown } from './import-work.ts'
import { linesOf } from './lines-of.ts'
import { oneLine, print } from '../print.ts'

export async function importEvents({ words, values }: Invocation): Promise<number> {
  const path = words[0] ?? '-'
  const data = await openData({ ...dataPlace(values), create: true })
  try {
    const { orgId } = (await data.call('import begin', { org: values.org, path })) as { orgId: string }
    const sums = { lines: 0, accepted: 0, deduped: 0, rejected: 0, issues: [] as Issue[] }
    let promised: number | null = null
    for await (const batch of batches(path, (count) => (promised = count)))
      await append(data, orgId, batch, sums)
    const whole = promised === null ? null : promised === sums.lines
    const { lines, accepted, deduped, rejected, issues } = sums
    if (values.json) print(JSON.stringify({ orgId, lines, accepted, deduped, rejected, whole, issues }))
    else print(importText({ lines, accepted, deduped, rejected, whole, issues }))
    return rejected > 0 || whole === false ? 1 : 0
  } finally {
    await data.close()
  }
}

interface Sums {
  lines: number
  accepted: number
  deduped: number
  rejected: number
  issues: Issue[] // the first of them, `index` counting lines of the file from 0
}

async function append(data: DataAccess, orgId: string, lines: string[], sums: Sums): Promise<void> {
  const taken = (await data.call('import append', { orgId, body: lines.join('\n') })) as unknown as Sums
  for (const issue of taken.issues) {
    if (sums.issues.length < issuesShown)
      sums.issues.push({ ...issue, index: sums.lines + (issue.index ?? 0) })
  }
  sums.lines += lines.length
  sums.accepted += taken.accepted
  sums.deduped += taken.deduped
  sums.rejected += taken.rejected
}

/** Lines in batches that ingest would take; the last line of an export is told apart. */
async function* batches(path: string, promised: (count: number) => void): AsyncGenerator<string[]> {
  let batch: string[] = []
  let chars = 0
  for await (const line of linesOf(path)) {
    if (line.trim() === '') continue
    const end = endOf(line)
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

/** The count in `{"_end":{"count":n}}`, or null for any other line. */
function endOf(line: string): number | null {
  const count = /^\{"_end":\{"count":(\d{1,15})\}\}$/.exec(line.trim())?.[1]
  return count === undefined ? null : Number(count)
}

function importText({
  lines,
  accepted,
  deduped,
  rejected,
  whole,
  issues,
}: Sums & { whole: boolean | null }): string {
  const text = [
    `Read ${lines} events: stored ${accepted}, ${deduped} were there already, ${rejected} rejected.`,
  ]
  for (const { index = 0, path, message } of issues)
    text.push(oneLine(`  event ${index + 1}: ${path || 'it'} ${message}`))
  if (rejected > issues.length) text.push('  …')
  if (whole === false) text.push('The file is not whole: its last line names another count.')
  if (whole === null)
    text.push('The file does not say how many it should hold; an export ends with its count.')
  return text.join('\n')
}
