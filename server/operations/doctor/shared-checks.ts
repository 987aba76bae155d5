/** Checks of nodes that share a database: their versions and clocks, the key ring, and who makes backups. */
import { statSync } from 'node:fs'
import { seenMsMax, skewMaxMs } from '../../system/shared-node.ts'
import { failure, ok, warning, type Check } from './check.ts'
import type { Node } from '../../../db/contract/nodes.ts'
import type { Checkup } from '../../../db/contract/operations.ts'
import type { OtherTools } from '../../../db/contract/admin.ts'

export function checkNodes({ nodes, storeMs: now }: Pick<Checkup, 'nodes' | 'storeMs'>): Check {
  const isMissing = ({ seenAtMs }: Node) => now - seenAtMs > seenMsMax
  const running = nodes.filter((node) => !isMissing(node))
  const versions = [...new Set(running.map(({ version }) => version))].sort()
  const skewed = running.filter(({ report }) => Math.abs(report?.aheadMs ?? 0) > skewMaxMs)
  const findings = [
    ...(versions.length > 1 ? [`they run different versions: ${versions.join(', ')}`] : []),
    ...nodes
      .filter(isMissing)
      .map(({ name, seenAtMs }) => `${name} was last seen ${minutesText(now - seenAtMs)} ago`),
    ...skewed.map(
      ({ name, report }) => `the clock of ${name} is off by ${Math.round(report!.aheadMs / 1_000)} s`,
    ),
    ...running.flatMap(({ name, report }) => (report?.problem ? [`${name}: ${report.problem}`] : [])),
  ]
  const counted = `${running.length} ${running.length === 1 ? 'node runs' : 'nodes run'}`
  if (findings.length === 0)
    return ok('nodes', versions.length === 0 ? 'No node runs.' : `${counted}, version ${versions[0]}.`)
  return warning(
    'nodes',
    `${counted}; ${findings.join('; ')}.`,
    'upgrade all nodes, restart those that are missing, and synchronize clocks with NTP',
  )
}

function minutesText(ms: number): string {
  const minutes = Math.max(1, Math.round(ms / 60_000))
  return `${minutes} ${minutes === 1 ? 'minute' : 'minutes'}`
}

/** Whether this node and its database agree on the time. */
export function checkSkew(aheadMs: number): Check {
  const seconds = (Math.abs(aheadMs) / 1_000).toFixed(1)
  const detail = `The clock is ${seconds} s ${aheadMs < 0 ? 'behind' : 'ahead of'} the clock of the database.`
  return Math.abs(aheadMs) <= skewMaxMs
    ? ok('clock-skew', detail)
    : warning('clock-skew', detail, 'synchronize the clocks of both machines with NTP')
}

export function checkUpkeep(problem: string | null): Check {
  if (problem === null) return ok('server-upkeep', 'Running server: its background work succeeds.')
  return failure(
    'server-upkeep',
    `Running server: ${problem}.`,
    'free space or restore permissions; for "corrupt" run "sightglass verify"',
  )
}

/** Secrets of the database are encrypted with the ring, so whoever reads the file reads them. */
export function checkKeyFile(path: string | null): Check | null {
  if (path === null) return null
  const mode = statSync(path, { throwIfNoEntry: false })?.mode
  if (mode === undefined) return failure('key-file', `${path} is missing.`, 'put it back from your copy')
  if ((mode & 0o007) === 0)
    return ok('key-file', 'Other users cannot read the key file. Keep a copy of it elsewhere.')
  return failure(
    'key-file',
    `Other users can read ${path} (mode ${(mode & 0o777).toString(8)}), and with it every secret of the database.`,
    `chmod o= ${path}`,
  )
}

/** Operators back a shared database up with its own tools. */
export function checkOtherTools({ backUp }: OtherTools): Check {
  return { ...ok('backup', 'The database is backed up outside of Sightglass.'), hint: backUp }
}
