/**
 * Copies a data folder of every kind of data to PostgreSQL and back with the executable, and verifies both copies:
 * `bun tests/bench/copy.bench.ts --events 1000000`.
 */
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { openDatabaseAdmin } from '../../db/open.ts'
import { cli } from '../support/binary.ts'
import { startPostgres } from '../support/postgres.ts'
import { tempDir } from '../support/temp-dir.ts'
import { makeEverything } from '../store/copy-data.ts'

const { values } = parseArgs({
  options: { events: { type: 'string', default: '1000000' }, skip: { type: 'boolean' } },
})
const events = Number(values.events)

const started = performance.now()
function note(text: string): void {
  process.stdout.write(`${((performance.now() - started) / 1_000).toFixed(1).padStart(6)} s  ${text}\n`)
}

async function timed(name: string, args: string[]): Promise<string> {
  const startedMs = performance.now()
  const { code, stdout, stderr } = await cli(args, { timeoutMs: 1_200_000 })
  const seconds = (performance.now() - startedMs) / 1_000
  note(`${name}: exit code ${code} after ${seconds.toFixed(1)} s\n${stderr}${stdout}`)
  if (code !== 0) throw new Error(name)
  return stdout
}

/** The lines about organizations and chains, in order. */
const bare = (text: string) =>
  text
    .split('\n')
    .filter((line) => /events|intact up to/.test(line))
    .join('\n')

async function main(): Promise<boolean> {
  using temp = tempDir('copy-bench')
  const folder = temp.join('data')
  const back = temp.join('back')
  const ring = temp.join('key-ring')
  await makeEverything(folder, events)
  const keys = ['secret.key', 'audit-signing.key'].map((name) => readFileSync(`${folder}/${name}`, 'utf8'))
  writeFileSync(ring, keys.join(''))
  chmodSync(ring, 0o600)
  note(`made ${events.toLocaleString('en-US')} events and everything else`)
  const cluster = await startPostgres({ fsync: true })
  const heads = JSON.stringify((await openDatabaseAdmin(folder).facts()).auditHeads)
  const shared = ['--database', cluster.url, '--key-file', ring]
  await timed('copy to PostgreSQL', ['copy', '--from', folder, '--to', cluster.url, '--key-file', ring])
  await timed('copy back', ['copy', '--from', cluster.url, '--to', back, '--key-file', ring])
  const isSameChain = JSON.stringify((await openDatabaseAdmin(back).facts()).auditHeads) === heads
  note(`audit chains ${isSameChain ? 'equal' : 'DIFFERENT'}`)
  const verdicts = values.skip
    ? []
    : [
        await timed('verify the source', ['verify', '--data-dir', folder]),
        await timed('verify PostgreSQL', ['verify', '--data-dir', temp.join('node'), ...shared]),
        await timed('verify the copy of the copy', ['verify', '--data-dir', back]),
      ]
  await cluster.stop()
  rmSync(ring)
  return isSameChain && verdicts.every((text) => bare(text) === bare(verdicts[0]!))
}

process.exit((await main()) ? 0 : 1)
