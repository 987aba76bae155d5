/** `sightglass verify`: says whether the audit trail is as it was written, and names the first row that is not. */
import type { Invocation } from '../config.ts'
import { verifyTrail, type TrailVerdict } from '../audit/verify.ts'
import { UsageError } from '../option-values.ts'
import { oneLine, print } from './print.ts'

/** Exit code 1 when anything is not as it was written. */
export async function verify({ words, values }: Invocation): Promise<number> {
  const [what = 'audit'] = words
  if (what !== 'audit') throw new UsageError(`"${what}" cannot be verified`, 'sightglass verify audit')
  const verdict = await verifyTrail(values['data-dir'])
  print(values.json ? JSON.stringify(verdict) : verdictText(verdict))
  return verdict.ok ? 0 : 1
}

function verdictText({ ok, chains, faults, checkpoints }: TrailVerdict): string {
  const lines = chains.map(({ orgId, count, hash }) => {
    const fault = faults.find((each) => each.orgId === orgId)
    if (fault === undefined) return `${orgId}: ${count} entries, whole, up to ${hash}`
    const entry = fault.entryId === null ? '' : ` (${fault.entryId})`
    return `${orgId}: position ${fault.position}${entry} is ${fault.kind}: ${fault.message}`
  })
  for (const { line, message } of checkpoints.unsound)
    lines.push(`audit-checkpoints: line ${line} ${message}`)
  lines.push(
    checkpoints.newest === null
      ? 'No checkpoint has been signed yet: the first comes within a day.'
      : `${checkpoints.sound} signed checkpoints hold, the newest of ${checkpoints.newest}.`,
    ok ? 'The audit trail is as it was written.' : 'The audit trail is NOT as it was written.',
  )
  return lines.map(oneLine).join('\n')
}
