/** Bench of deletion: how long posts wait beside retention and erasures, and the result of `verify` afterwards. */
import { cli, startAppliance, type Appliance } from '../support/binary.ts'
import type { LoadResult } from '../support/load.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'
import { batchEvents, fixedTraffic } from './fixed-traffic.ts'
import { connections, keyOf, path, runner, storedEvents, type Runner } from './loads.ts'
import { machine, recordTable, table, watchStolen } from './report.ts'

const help = `Fills the executable with events, then goes on with full ingest over ${connections} connections: while
sessions and a subject are erased, and while the retention job, which comes every ten minutes, takes most of the events
away. Then runs \`verify\`.

  --events N   as many as you say; 2,000,000 unless given
  --write      replaces the section in tests/bench/results.md`

const dayMs = 86_400_000
const jobEveryMs = 600_000
const quietSeconds = 15
const erasures = 12
const bytesKept = 100 * 2 ** 20
const commonSubject = 'user-7' // 1 event in 100, so every block has some

interface Phase {
  load: LoadResult
  stolenPercent: number | null
  taken: number // events
}

interface Found {
  filled: number
  before: Phase
  sessions: Phase
  subject: Phase
  retention: Phase
  bytesGivenBack: number
  acknowledged: number
  counted: number // by the metrics
  verify: { code: number; text: string }
}

async function takeAwayBench(filled: number): Promise<Found> {
  using dir = tempDir('take-away-bench')
  const dataDir = dir.join('data')
  const args = ['--rate-limit-ingest', 'off', '--retention-bytes', String(bytesKept)]
  const server = await startAppliance({ args, dataDir })
  try {
    const ingest = await keyOf(server, 'ingest')
    const secret = await keyOf(server, 'secret')
    const run = runner(server, fixedTraffic(path, ingest, filled, 20 * dayMs))
    await run.fresh({ batches: filled / batchEvents, seconds: 600 })
    const phaseBefore = await beside(run, () => Bun.sleep(quietSeconds * 1_000).then(() => 0))
    const sessions = await beside(run, () => eraseSessions(server, secret))
    const subject = await beside(run, () => erase(server, '--subject', commonSubject))
    const untilJobMs = jobEveryMs - (Date.now() % jobEveryMs)
    await Bun.sleep(Math.max(0, untilJobMs - 5_000))
    const retention = await beside(run, () => retentionOf(server))
    const bytesGivenBack = logged(server, 'disk_reserve_released')!.bytes!
    const counts = { acknowledged: run.acknowledged(), counted: await storedEvents(server, secret) }
    await server.stop()
    const { code, stdout, stderr } = await cli(['verify'], { dataDir, timeoutMs: 600_000 })
    const verify = { code, text: (stdout + stderr).trim() }
    return { filled, before: phaseBefore, retention, bytesGivenBack, sessions, subject, ...counts, verify }
  } finally {
    await server.stop()
  }
}

/** Ingests at full rate while `work` runs, which returns the number of events it deleted. */
async function beside(run: Runner, work: () => Promise<number>): Promise<Phase> {
  let going = true
  const stolen = watchStolen()
  const [load, takenCount] = await Promise.all([
    run.fresh({ seconds: 2 * (jobEveryMs / 1_000), going: () => going }),
    work().finally(() => (going = false)),
  ])
  const phase = { load, stolenPercent: stolen.end(), taken: takenCount }
  process.stderr.write(`${JSON.stringify(phase)}\n`)
  return phase
}

async function retentionOf(server: Appliance): Promise<number> {
  await until(() => logged(server, 'disk_reserve_released') !== null, 1.5 * jobEveryMs)
  return logged(server, 'retention_applied')!.events!
}

/** The fields of the first log line with that event, or null. */
function logged(server: Appliance, name: string): Record<string, number> | null {
  const line = server
    .stderr()
    .split('\n')
    .find((candidate) => candidate.includes(`"${name}"`))
  return line === undefined ? null : (JSON.parse(line) as Record<string, number>)
}

/** One after the other, each for the newest event. */
async function eraseSessions(server: Appliance, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` }
  let events = 0
  for (let n = 0; n < erasures; n++) {
    const page = await fetch(`${server.url}/v1/traces?limit=1`, { headers })
    const [newest] = ((await page.json()) as { events: { sessionId: string }[] }).events
    events += await erase(server, '--session', newest!.sessionId)
  }
  return events
}

async function erase(server: Appliance, ...eraseArgs: string[]): Promise<number> {
  const options = { dataDir: server.dataDir, timeoutMs: 300_000 }
  const eraseExit = await cli(['erase', ...eraseArgs, '--yes', '--json'], options)
  if (eraseExit.code !== 0) throw new Error(eraseExit.stderr)
  return (JSON.parse(eraseExit.stdout) as { events: number }).events
}

function takeAwayTables(result: Found): string {
  const { filled, acknowledged, counted, bytesGivenBack, verify } = result
  const row = (phaseName: string, { load, stolenPercent, taken: takenCount }: Phase) => [
    phaseName,
    Math.round(load.seconds),
    takenCount,
    Math.round((load.requests * batchEvents) / load.seconds),
    ...[load.p50Ms, load.p99Ms, load.longestMs].map(Math.round),
    load.refused,
    stolenPercent ?? '',
  ]
  const head = ['beside full ingest', 's', 'events taken', 'events/s', 'p50 ms', 'p99 ms', 'longest ms']
  const takenTotal = result.sessions.taken + result.subject.taken
  return `${filled.toLocaleString('en-US')} events before; batches of ${batchEvents}, ${connections} connections

${table(
  [...head, 'refused', 'taken by the host %'],
  [
    row('nothing', result.before),
    row(`${erasures} sessions erased`, result.sessions),
    row('a subject of every hundredth event erased', result.subject),
    row('retention', result.retention),
  ],
)}

${(bytesGivenBack / 2 ** 20).toFixed(0)} MiB given back. Acknowledged ${acknowledged}, erased ${takenTotal}, counted
${counted}: ${acknowledged - takenTotal - counted} missing. \`sightglass verify\`, exit ${verify.code}:

${verify.text.replaceAll(/^/gm, '    ')}`
}

if (import.meta.main) {
  if (process.argv.includes('--help')) console.log(help)
  else {
    const optionIndex = process.argv.indexOf('--events')
    const text = takeAwayTables(
      await takeAwayBench(optionIndex >= 0 ? Number(process.argv[optionIndex + 1]) : 2_000_000),
    )
    process.stdout.write(`${machine()}\n\n${text}\n`)
    if (process.argv.includes('--write')) recordTable('Taking away beside full ingest', text)
  }
}
