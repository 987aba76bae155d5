/**
 * Imports a combined log in which every fifth line is an agent's with the executable, beside GoAccess on the same file:
 * `bun tests/bench/access.bench.ts --lines 1000000`. `--memory 10` imports as many GB through a pipe instead.
 */
import { existsSync, statSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { openStore } from '../../db/open.ts'
import { importRun, planLogs } from '../../server/access/import-logs.ts'
import { openEvidence } from '../../sdk/judge/judge.ts'
import { accessStore, importAccess } from '../../server/cli/commands/import-access.ts'
import type { StoreAccess } from '../../server/runtime/store-access.ts'
import { binaryPath } from '../support/binary.ts'
import { tempDir } from '../support/temp-dir.ts'
import { makeAudit, makeOrg } from '../store/make.ts'
import { machine, recordTable, table } from './report.ts'

const agents = [
  'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)',
  'Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)',
  'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot',
  'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; PerplexityBot/1.0; +https://perplexity.ai/bot)',
]
const otherAgents = [
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1',
  'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'curl/8.5.0',
]

const startMs = Date.UTC(2026, 10, 20)
const linesPerSecond = 20

/** The same lines in each run, from `first` on. */
function logLines(first: number, count: number): string {
  const lines: string[] = []
  for (let index = first; index < first + count; index++) {
    const mixed = Math.imul(index + 1, 0x9e3779b1) >>> 0
    const pick = (shift: number, optionCount: number): number => (mixed >>> shift) % optionCount
    const isAgent = index % 5 === 0
    const time = new Date(startMs + Math.floor(index / linesPerSecond) * 1_000).toISOString()
    const clock = `${time.slice(8, 10)}/Nov/2026:${time.slice(11, 19)} +0000`
    const address = isAgent
      ? `20.171.${pick(3, 4)}.${pick(12, 50)}`
      : `198.51.${pick(3, 100)}.${pick(12, 50)}`
    const page = `/products/category-${pick(5, 20)}/item-${pick(7, 100)}`
    const path = isAgent || pick(4, 4) === 0 ? page : `/assets/app.${pick(6, 30)}.js?v=${pick(9, 3)}`
    const status = pick(8, 30) === 0 ? 404 : 200
    const referrer = pick(2, 3) === 0 ? 'https://shop.example/products' : '-'
    const userAgent = isAgent ? agents[pick(10, 4)]! : otherAgents[pick(13, 4)]!
    const request = `"GET ${path} HTTP/1.1" ${status} ${pick(1, 90_000)}`
    lines.push(`${address} - - [${clock}] ${request} "${referrer}" "${userAgent}"\n`)
  }
  return lines.join('')
}

const chunkLines = 10_000

export async function writeLog(path: string, lines: number): Promise<void> {
  const writer = Bun.file(path).writer({ highWaterMark: 1024 * 1024 })
  for (let offset = 0; offset < lines; offset += chunkLines) {
    writer.write(logLines(offset, Math.min(chunkLines, lines - offset)))
    await writer.flush()
  }
  await writer.end()
}

interface Measured {
  wallMs: number
  processorMs: number // of all threads
}

/** What reading the lines costs at least: one regular expression per line. */
const combined = /^(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) (\S+) [^"]*" (\d{3}) (\d+|-) "([^"]*)" "([^"]*)"$/

export async function bareRead(path: string): Promise<Measured> {
  return measured(async () => {
    let matchCount = 0
    for (const line of (await Bun.file(path).text()).split('\n'))
      if (combined.exec(line) !== null) matchCount++
    if (matchCount === 0) throw new Error('no line fits')
  })
}

/** Imports in this process into an empty store. */
export async function importHere(path: string): Promise<Measured> {
  using temp = tempDir('access-bench')
  const store = await openStore({ folder: temp.path, now: startMs })
  const org = makeOrg()
  await store.orgs.create({ org, audit: makeAudit(org.id) })
  const work = importAccess.commands[0]!.work!
  const context = { store, clock: { now: () => Date.now() } } as never
  const call: StoreAccess['call'] = (verb, params) => work[verb.split(' ')[2]!]!(context, params)
  const logs = accessStore({ byServer: false, call }, org.id, 'shop')
  const evidence = openEvidence({ lists: [], hosts: [], products: [], keys: [] } as never)
  const options = { siteId: 'shop', keepQuery: [], keepAddresses: false, trustedProxies: [] }
  const result = await measured(async () => {
    const { logs: planned } = await planLogs([path], 'auto')
    await importRun({ ...options, evidence, evidenceMaxAgeDays: 180, observedBy: 'appliance' }, logs).read(
      planned[0]!,
    )
  })
  await store.close()
  return result
}

async function measured(work: () => Promise<void>): Promise<Measured> {
  const usageBefore = process.cpuUsage()
  const startedMs = performance.now()
  await work()
  const { user, system } = process.cpuUsage(usageBefore)
  return { wallMs: performance.now() - startedMs, processorMs: (user + system) / 1_000 }
}

interface Child extends Measured {
  mostMiB: number
  output: string
}

/** Of the largest process, when it starts others. */
async function child(command: string[]): Promise<Child> {
  const startedMs = performance.now()
  const run = Bun.spawn(command, { stdout: 'pipe', stderr: 'pipe', env: {} })
  const output = await new Response(run.stdout).text()
  if ((await run.exited) !== 0) throw new Error(`${command[0]}: ${await new Response(run.stderr).text()}`)
  const { cpuTime, maxRSS } = run.resourceUsage()!
  const processorMs = Number(cpuTime.total) / 1_000
  return { wallMs: performance.now() - startedMs, processorMs, mostMiB: maxRSS / 2 ** 20, output }
}

const rounds = 3

/** The best of alternating rounds. */
async function compare(lines: number): Promise<string> {
  using temp = tempDir('access-bench')
  const path = temp.join('access.log')
  await writeLog(path, lines)
  const importInto = (folder: string, ...extraArgs: string[]) =>
    child([
      binaryPath,
      'import',
      'access',
      path,
      '--site',
      'shop',
      '--data-dir',
      temp.join(folder),
      ...extraArgs,
    ])
  const report = ['--log-format=COMBINED', '-o', temp.join('report.json'), '--no-progress']
  const runs: { [name: string]: (round: number) => Promise<Child> } = {
    'import access': (round) => importInto(`data-${round}`),
    'import access, known lines': (round) => importInto(`data-${round}`),
    'import access --dry-run': (round) => importInto(`dry-${round}`, '--dry-run'),
    ...(existsSync('/usr/bin/goaccess')
      ? { 'GoAccess 1.7': () => child(['/usr/bin/goaccess', path, ...report]) }
      : {}),
  }
  const best = new Map<string, Child>()
  for (let round = 0; round < rounds; round++)
    for (const [name, run] of Object.entries(runs)) {
      const result = await run(round)
      const bestResult = best.get(name) ?? result
      best.set(name, {
        wallMs: Math.min(bestResult.wallMs, result.wallMs),
        output: '',
        processorMs: Math.min(bestResult.processorMs, result.processorMs),
        mostMiB: Math.max(bestResult.mostMiB, result.mostMiB),
      })
    }
  if (!existsSync('/usr/bin/goaccess')) console.warn('GoAccess is not compared: apt-get install goaccess')
  const rows = [...best].map(([name, { wallMs, processorMs, mostMiB }]) => [
    name,
    Math.round((lines / wallMs) * 1_000),
    ((processorMs / lines) * 1_000).toFixed(2),
    Math.round(mostMiB),
  ])
  const megabytes = Math.round(statSync(path).size / 1e6)
  const head = `${lines.toLocaleString('en-US')} lines, ${megabytes} MB, 20 % agents`
  return table([head, 'lines/s', 'processor µs/line', 'MiB at most'], rows)
}

const repeated = 1_000_000

/** Imports the same million lines again and again through a pipe: at other offsets they are other requests. */
async function memory(gigabytes: number): Promise<string> {
  using temp = tempDir('access-bench')
  const part = temp.join('part.log')
  await writeLog(part, repeated)
  const times = Math.ceil((gigabytes * 1e9) / statSync(part).size)
  const bytes = times * statSync(part).size
  const lines = times * repeated
  const script =
    'n=$1; while [ $n -gt 0 ]; do cat "$2"; n=$((n - 1)); done | "$0" import access - --site shop --data-dir "$3"'
  const command = ['sh', '-c', script, binaryPath, String(times), part, temp.join('data')]
  const { mostMiB, wallMs } = await child(command)
  const head = `${(bytes / 1e9).toFixed(1)} GB through a pipe, ${lines.toLocaleString('en-US')} lines`
  return table(
    [head, 'lines/s', 'MiB at most'],
    [['import access', Math.round((lines / wallMs) * 1_000), Math.round(mostMiB)]],
  )
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { lines: { type: 'string', default: '1000000' }, memory: { type: 'string' } },
  })
  const text = values.memory ? await memory(Number(values.memory)) : await compare(Number(values.lines))
  process.stdout.write(`${machine()}\n\n${text}\n`)
  recordTable(values.memory ? 'Access logs, memory' : 'Access logs', text)
}
