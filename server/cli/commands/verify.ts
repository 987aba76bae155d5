/** `sightglass verify`: checks events, counts and the audit trail, or an exported proof, for changes. */
import { openSync, closeSync, readSync, readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { EventVerdict } from '../../../db/contract/store.ts'
import { openDatabaseAdmin } from '../../../db/open.ts'
import { verifyProof, verifyTrail, type ProofVerdict, type TrailVerdict } from '../../audit/verify.ts'
import { systemClock } from '../../clock.ts'
import { UsageError } from '../../errors.ts'
import { limits } from '../../limits.ts'
import { countText } from '../../text/html.ts'
import { verifyReport, type ReportVerdict } from '../../reports/proof.ts'
import { requireUpgraded } from '../../runtime/open-data-folder.ts'
import { command, type Invocation, type Noun } from '../command.ts'
import { text } from '../option.ts'
import { keyRingOf, locationOf, sharedDatabaseOf } from '../options.ts'
import { oneLine, print, printAnswer } from '../print.ts'

const options = {
  'trusted-key': {
    ...text('KEY', 'public key that must have signed the proof, known from an older export or a checkpoint'),
    flagOnly: true,
  },
} as const

export const verify: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'verify',
      summary: 'check events, counts and the audit trail for changes',
      usage: '[audit|events] | verify FILE [--trusted-key KEY]',
      argumentsMax: 1,
      about: [
        'Reads every event with its id and index entries, recounts the rollups, checks every row of every audit chain, the heads and the signed checkpoints, and lists everything that was changed, moved or deleted. Changes nothing; a server may run. Takes about 10 s per million events. Exit code 1 when anything differs.',
        'With FILE it checks an exported audit proof or a report, without a data folder or network. Compare the key that signed it with one from another source: an older export, or a checkpoint in a log.',
      ],
      examples: [
        'sightglass verify',
        'sightglass verify audit --json',
        'sightglass verify acme-audit.jsonl --trusted-key 7dJ…',
        'sightglass verify week.html',
      ],
      options,
      run,
    }),
  ],
}

async function run({ words: [subject], values }: Invocation<typeof options>): Promise<number> {
  const trusted = values['trusted-key']
  if (subject !== undefined && subject !== 'audit' && subject !== 'events')
    return verifyFile(subject, trusted, values.json)
  if (trusted !== null)
    throw new UsageError('--trusted-key needs a file', 'sightglass verify FILE --trusted-key KEY')
  const folder = values['data-dir']
  const location = locationOf(values)
  // The trail first: it is quick, and it rejects a folder without a database.
  const trail = subject === 'events' ? null : await verifyTrail(folder, keyRingOf(values), location)
  // What an upgrade adds would be missing. An audit trail is the same in every schema.
  if (subject !== 'audit') await requireUpgraded(folder, systemClock, sharedDatabaseOf(values))
  const events = subject === 'audit' ? null : await openDatabaseAdmin(location).verifyEvents()
  const ok = trail?.ok !== false && (events === null || events.faults.length === 0)
  printAnswer(values, { ...trail, events, ok }, () =>
    [
      ...(events === null ? [] : eventLines(events)),
      ...(trail === null ? [] : trailLines(trail)),
      ok ? 'Everything is intact.' : 'NOT everything is intact.',
    ]
      .map(oneLine)
      .join('\n'),
  )
  return ok ? 0 : 1
}

/** Checks an exported proof from the file alone. */
async function verifyFile(path: string, trusted: string | null, asJson: boolean): Promise<number> {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined && !/[./\\]/.test(path))
    throw new UsageError(`"${path}" is neither audit, events nor a file`, 'sightglass help verify')
  if (stats === undefined) throw new Error(`${path}: no such file`)
  if (!stats.isFile() && !stats.isFIFO()) throw new Error(`${path} is not a file`)
  if (stats.isFile() && isHtml(path)) return verifyReportFile(path, stats.size, trusted, asJson)
  const verdict = await verifyProof(path, trusted)
  print(asJson ? JSON.stringify({ file: resolve(path), ...verdict }) : proofLines(path, verdict).join('\n'))
  return verdict.ok ? 0 : 1
}

const htmlStart = '<!doctype html>'

function isHtml(path: string): boolean {
  const file = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(htmlStart.length)
    return readSync(file, bytes, 0, bytes.length, 0) === bytes.length && String(bytes) === htmlStart
  } finally {
    closeSync(file)
  }
}

function verifyReportFile(path: string, size: number, trusted: string | null, asJson: boolean): number {
  const tooLarge = {
    ok: false,
    fault: `It is larger than a report, which has at most ${limits.reportFileBytesMax} bytes`,
  }
  const verdict: ReportVerdict =
    size > limits.reportFileBytesMax ? tooLarge : verifyReport(readFileSync(path), trusted)
  print(asJson ? JSON.stringify({ file: resolve(path), ...verdict }) : reportLines(path, verdict).join('\n'))
  return verdict.ok ? 0 : 1
}

function reportLines(
  path: string,
  { fault, org, since, until, events, at: signedAt, key }: ReportVerdict,
): string[] {
  const lines =
    fault === null
      ? [
          `${path}: unchanged. Report of ${org}, ${since} to ${until}, ` +
            `${countText(events ?? 0)} events, signed ${signedAt} by ${key}.`,
          'Compare the key with one from another source, such as an older report or a logged checkpoint (--trusted-key).',
        ]
      : [`${path}: do NOT trust this report. ${fault}.`]
  return lines.map(oneLine)
}

function proofLines(path: string, verdict: ProofVerdict): string[] {
  const { orgId, entries, trimmed, signedAt, key, fault } = verdict
  const entry = fault?.entryId ? ` (${fault.entryId})` : ''
  const trimmedText = trimmed === 0 ? '' : ` after ${trimmed} that retention deleted`
  const lines =
    fault === null
      ? [
          `${path}: intact. ${entries} audit entries of ${orgId}${trimmedText}, signed ${signedAt} by ${key}.`,
          'Compare the key with one from another source, such as an older export or a logged checkpoint (--trusted-key).',
        ]
      : [`${path}: NOT intact. Line ${fault.line}${entry}: ${fault.message}.`]
  return lines.map(oneLine)
}

function eventLines({ orgs, faults }: EventVerdict): string[] {
  const sums = orgs.map(({ orgId, events }) => {
    const wrong = faults.filter((fault) => fault.orgId === orgId).length
    const state =
      wrong === 0 ? 'intact (ids, indexes and counts match)' : `${wrong} ${wrong === 1 ? 'fault' : 'faults'}`
    return `${orgId}: ${events.toLocaleString('en-US')} events, ${state}`
  })
  const places = faults.map(
    ({ orgId, place, problem }) => `${orgId ?? 'the appliance'}: ${place}: ${problem}`,
  )
  return [...sums, ...places]
}

const withoutIt = 'Entries deleted from the end before that cannot be detected without it.'

function lossLine(file: string, missingAt: string, acceptedAt: string | null): string {
  if (acceptedAt !== null)
    return `Note: ${file} was missing on ${missingAt}, which was accepted on ${acceptedAt}. ${withoutIt}`
  return `${file} was missing on ${missingAt}. ${withoutIt} To accept that: sightglass accept-loss`
}

function trailLines({ chains, faults, checkpoints, missing, renewed }: TrailVerdict): string[] {
  const lines = chains.map(({ orgId, count, hash, trim }) => {
    const fault = faults.find((auditFault) => auditFault.orgId === orgId)
    const trimmed = trim === null ? '' : `, of which retention deleted ${trim.count} (signed ${trim.at})`
    if (fault === undefined)
      return `${orgId}: ${count} audit ${count === 1 ? 'entry' : 'entries'}${trimmed}, intact up to ${hash}`
    const entry = fault.entryId === null ? '' : ` (${fault.entryId})`
    return `${orgId}: audit position ${fault.position}${entry} is ${fault.kind}: ${fault.message}`
  })
  for (const { place, message } of checkpoints.unsound) lines.push(`${place} ${message}`)
  for (const file of missing) {
    lines.push(`${file} was deleted: audit entries exist, so it existed too. ${withoutIt}`)
  }
  for (const { file, at: missingAt, acceptedAt } of renewed) lines.push(lossLine(file, missingAt, acceptedAt))
  const { torn } = checkpoints
  if (torn !== null) {
    const { line, bytes } = torn
    lines.push(
      `Note: a crash cut off line ${line} of audit-checkpoints after ${bytes} bytes. The next checkpoint removes it.`,
    )
  }
  lines.push(
    checkpoints.newest === null
      ? 'No checkpoint is signed yet; the first follows within a day.'
      : `${checkpoints.sound} signed ${checkpoints.sound === 1 ? 'checkpoint matches' : 'checkpoints match'}, the newest of ${checkpoints.newest}.`,
  )
  return lines
}
