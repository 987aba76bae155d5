/** `sightglass verify`: says whether events, counts and the audit trail, or an exported proof, are as written. */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { verifyEvents } from '../../../db/open.ts'
import type { EventVerdict } from '../../../db/contract/store.ts'
import type { Invocation } from '../config.ts'
import { verifyTrail, type TrailVerdict } from '../../audit/verify.ts'
import type { ProofVerdict } from '../../audit/verify-proof.ts'
import { UsageError } from '../../errors.ts'
import { oneLine, print } from '../print.ts'

const parts = ['audit', 'events'] as const

/** Exit code 1 when anything is not as it was written. */
export async function verify({ words, values }: Invocation): Promise<number> {
  const [what] = words
  const trusted = values['trusted-key']
  if (what !== undefined && !parts.some((part) => part === what))
    return verifyFile(what, trusted, values.json)
  if (trusted !== null)
    throw new UsageError('--trusted-key goes with a proof', 'sightglass verify FILE --trusted-key KEY')
  const folder = values['data-dir']
  // The trail first: it is quick, and a folder without a database is refused by it.
  const trail = what === 'events' ? null : await verifyTrail(folder)
  const events = what === 'audit' ? null : await verifyEvents(folder)
  const ok = trail?.ok !== false && (events === null || events.faults.length === 0)
  const texts = [
    ...(events === null ? [] : eventLines(events)),
    ...(trail === null ? [] : trailLines(trail)),
    ok ? 'Everything is as it was written.' : 'NOT everything is as it was written.',
  ]
  print(values.json ? JSON.stringify({ ...trail, events, ok }) : texts.map(oneLine).join('\n'))
  return ok ? 0 : 1
}

/** An exported proof, from the file alone. */
async function verifyFile(path: string, trusted: string | null, asJson: boolean): Promise<number> {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined && !/[./\\]/.test(path))
    throw new UsageError(
      `"${path}" cannot be verified`,
      'sightglass verify, verify audit|events or verify FILE',
    )
  if (found === undefined) throw new Error(`${path}: there is no such file`)
  if (!found.isFile() && !found.isFIFO()) throw new Error(`${path} is not a file`)
  const { verifyProof } = await import('../../audit/verify-proof.ts')
  const verdict = await verifyProof(path, trusted)
  print(asJson ? JSON.stringify({ file: resolve(path), ...verdict }) : proofLines(path, verdict).join('\n'))
  return verdict.ok ? 0 : 1
}

function proofLines(path: string, verdict: ProofVerdict): string[] {
  const { orgId, entries, trimmed, signedAt, key, fault } = verdict
  const entry = fault?.entryId ? ` (${fault.entryId})` : ''
  const before = trimmed === 0 ? '' : ` after ${trimmed} that retention removed`
  const lines =
    fault === null
      ? [
          `${path}: sound. ${entries} audit entries of ${orgId}${before}, signed ${signedAt} by ${key}.`,
          'Compare the key with one from elsewhere, such as an older export or a logged checkpoint (--trusted-key).',
        ]
      : [`${path}: NOT sound. Line ${fault.line}${entry}: ${fault.message}.`]
  return lines.map(oneLine)
}

function eventLines({ orgs, faults }: EventVerdict): string[] {
  const sums = orgs.map(({ orgId, events }) => {
    const wrong = faults.filter((fault) => fault.orgId === orgId).length
    const state = wrong === 0 ? 'whole, with their ids, indexes and counts' : `${wrong} faults`
    return `${orgId}: ${events.toLocaleString('en-US')} events, ${state}`
  })
  const places = faults.map(
    ({ orgId, place, problem }) => `${orgId ?? 'the appliance'}: ${place}: ${problem}`,
  )
  return [...sums, ...places]
}

const withoutIt = 'Entries that were cut off before cannot be detected without it.'

function trailLines({ chains, faults, checkpoints, missing, renewed }: TrailVerdict): string[] {
  const lines = chains.map(({ orgId, count, hash, trim }) => {
    const fault = faults.find((each) => each.orgId === orgId)
    const kept = trim === null ? '' : `, of which ${trim.count} went by retention (signed ${trim.at})`
    if (fault === undefined) return `${orgId}: ${count} audit entries${kept}, whole, up to ${hash}`
    const entry = fault.entryId === null ? '' : ` (${fault.entryId})`
    return `${orgId}: audit position ${fault.position}${entry} is ${fault.kind}: ${fault.message}`
  })
  for (const { line, message } of checkpoints.unsound)
    lines.push(`audit-checkpoints: line ${line} ${message}`)
  for (const file of missing) {
    lines.push(`${file} is missing beside audit entries, so it was removed. ${withoutIt}`)
  }
  for (const { file, at } of renewed) lines.push(`Note: ${file} was missing on ${at}. ${withoutIt}`)
  const { torn } = checkpoints
  if (torn !== null) {
    const { line, bytes } = torn
    lines.push(
      `Note: line ${line} of audit-checkpoints was cut off by a crash after ${bytes} bytes. The next one removes it.`,
    )
  }
  lines.push(
    checkpoints.newest === null
      ? 'No checkpoint has been signed yet: the first comes within a day.'
      : `${checkpoints.sound} signed checkpoints hold, the newest of ${checkpoints.newest}.`,
  )
  return lines
}
