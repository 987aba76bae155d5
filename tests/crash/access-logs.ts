/**
 * Kills the reader of an access log and its appliance while lines are written and the log is rotated. Run by hand:
 * `bun tests/crash/access-logs.ts --rounds 100 [--seed N]`. Every line must be stored exactly once.
 */
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
} from 'node:fs'
import { unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { binaryPath, cleanEnv, startAppliance, type Appliance } from '../support/binary.ts'
import { run, type Running } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import { anySeed, seeded, type Seeded } from './seeded.ts'

const agent = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'
const browser = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const faults = ['reader', 'appliance', 'both', 'none'] as const
const rotations = ['none', 'none', 'rename', 'copytruncate'] as const
const oldest = 400 // rotated files, so that none is deleted before it was read

/** A log that is written and rotated. Each line is another request, each third one by a person. */
function startLog(path: string) {
  let written = 0
  const line = (): string => {
    const number = written++
    const time = new Date(Date.UTC(2026, 10, 23) + number * 40).toISOString().slice(11, 19)
    const userAgent = number % 3 === 2 ? browser : agent
    return `203.0.113.9 - - [23/Nov/2026:${time} +0000] "GET /n/${number} HTTP/1.1" 200 5 "-" "${userAgent}"\n`
  }
  const shift = (): void => {
    for (let number = oldest; number >= 1; number--)
      for (const end of ['', '.gz'])
        if (existsSync(`${path}.${number}${end}`))
          renameSync(`${path}.${number}${end}`, `${path}.${number + 1}${end}`)
  }
  return {
    written: () => written,
    write: (lines: number): void => appendFileSync(path, Array.from({ length: lines }, line).join('')),
    rotate(rotation: (typeof rotations)[number]): void {
      if (rotation === 'none' || !existsSync(path) || statSync(path).size === 0) return
      shift()
      if (rotation === 'rename') return renameSync(path, `${path}.1`)
      copyFileSync(path, `${path}.1`)
      truncateSync(path)
    },
    compress(number: number): void {
      const plain = `${path}.${number}`
      if (!existsSync(plain)) return
      const { atimeMs, mtimeMs } = statSync(plain)
      writeFileSync(`${plain}.gz`, Bun.gzipSync(readFileSync(plain)))
      utimesSync(`${plain}.gz`, atimeMs / 1_000, mtimeMs / 1_000)
      unlinkSync(plain)
    },
  }
}

export interface LogRounds {
  written: number
  lost: string[]
  doubled: string[]
  people: number // of the lines, as the appliance counted them
  peopleWritten: number
  verify: { code: number; stdout: string }
}

/** Runs the rounds on one data folder, then waits until the appliance has read everything. */
export async function logRounds(rounds: number, { below: randomBelow }: Seeded): Promise<LogRounds> {
  using temp = tempDir('access-logs')
  const dataDir = temp.join('data')
  const path = temp.join('access.log')
  const log = startLog(path)
  let appliance = await startAppliance({ dataDir })
  const key = (await appliance.cli('key', 'create', '--kind', 'secret', '--label', 'count', '--json')).stdout
  const { key: secret } = JSON.parse(key) as { key: string }
  const read = (): Running =>
    run([binaryPath, 'watch', path, '--site', 'shop', '--data-dir', dataDir], {
      cwd: temp.path,
      env: cleanEnv({}),
    })
  log.write(5)
  let reader = read()
  try {
    await untilRead(appliance, secret, 5)
    for (let round = 0; round < rounds; round++) {
      const fault = faults[randomBelow(faults.length)]!
      for (let burst = randomBelow(6); burst >= 0; burst--) {
        log.write(1 + randomBelow(200))
        if (randomBelow(3) === 0) log.rotate(rotations[randomBelow(rotations.length)]!)
        if (randomBelow(4) === 0) log.compress(1 + randomBelow(3))
        await Bun.sleep(randomBelow(60))
      }
      if (fault === 'reader' || fault === 'both') reader.signal('SIGKILL')
      if (fault === 'appliance' || fault === 'both') await appliance.kill()
      log.write(1 + randomBelow(50))
      if (fault === 'reader' || fault === 'both') reader = (await reader.exited, read())
      if (fault === 'appliance' || fault === 'both') appliance = await startAppliance({ dataDir })
    }
    const { person } = await untilRead(appliance, secret, log.written()).catch(async (error: Error) => {
      const { lost } = await compare(appliance, log.written())
      throw new Error(
        `${error.message}, not ${lost.join(' ')}\n${reader.stdout()}\n${reader.stderr()}\n${appliance.stderr()}`,
      )
    })
    return { ...(await compare(appliance, log.written())), people: person }
  } finally {
    reader.signal('SIGTERM')
    await reader.exited
    await appliance.stop()
  }
}

type Counted = { agent: number; person: number }

async function untilRead(appliance: Appliance, key: string, lines: number): Promise<Counted> {
  const headers = { authorization: `Bearer ${key}` }
  for (const endMs = performance.now() + 60_000; ; await Bun.sleep(100)) {
    const response = await fetch(`${appliance.url}/v1/requests?since=2026-11-01`, { headers })
    const answer = (await response.json()) as { byKind: { [kind in keyof Counted]: { requests: number } } }
    const { byKind } = answer
    if (byKind === undefined) throw new Error(JSON.stringify(answer))
    const counted = { agent: byKind.agent.requests, person: byKind.person.requests }
    if (counted.agent + counted.person >= lines) return counted
    if (performance.now() > endMs) throw new Error(`${JSON.stringify(counted)} of ${lines} lines were read`)
  }
}

async function compare(appliance: Appliance, written: number): Promise<Omit<LogRounds, 'people'>> {
  const exported = (await appliance.cli('export', 'traces')).stdout
  const times = new Map<string, number>()
  for (const [, page = ''] of exported.matchAll(/"type":"agent\.requested".*?"page":"([^"]*)"/g))
    times.set(page, (times.get(page) ?? 0) + 1)
  const expected = Array.from({ length: written }, (_, number) => number).filter((number) => number % 3 !== 2)
  const lost = expected.map((number) => `/n/${number}`).filter((page) => !times.has(page))
  const doubled = [...times].filter(([, count]) => count > 1).map(([page]) => page)
  const { code, stdout } = await appliance.cli('verify')
  return { written, lost, doubled, peopleWritten: written - expected.length, verify: { code, stdout } }
}

if (import.meta.main) {
  const option = (name: string, otherwise: number): number =>
    process.argv.includes(name) ? Number(process.argv[process.argv.indexOf(name) + 1]) : otherwise
  const rounds = option('--rounds', 100)
  const seed = option('--seed', anySeed())
  const { written, lost, doubled, people, peopleWritten, verify } = await logRounds(rounds, seeded(seed))
  console.log(
    `${rounds} rounds, seed ${seed}: ${written} lines, ${lost.length} lost, ${doubled.length} doubled`,
  )
  console.log(`people: ${people} of ${peopleWritten}; verify: ${verify.code}\n${verify.stdout}`)
  process.exit(lost.length + doubled.length + verify.code + Math.abs(people - peopleWritten) === 0 ? 0 : 1)
}
