/** The appliance is killed for an hour: a site with the middleware answers as before, and every event arrives once. */
import { expect, test } from 'bun:test'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { ExporterStats } from '../../sdk/exporter/delivery.ts'
import { createGateway } from '../../sdk/node.ts'
import { startAppliance } from '../support/binary.ts'
import { run } from '../support/process.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'
import { hostEnv, type Keys, makeKeys } from './sdk-appliance.ts'

const root = join(import.meta.dir, '../..')
const hourMs = 3_600_000
const agents = ['GPTBot/1.2', 'ClaudeBot/1.0', 'PerplexityBot/1.0', 'CCBot/2.0']

async function startSite(dir: TempDir, url: string, keys: Keys, siteNowMs: number) {
  const env = { ...hostEnv(url, keys), SITE_NOW: String(siteNowMs) }
  const child = run(['node', dir.join('outage-site.js')], { cwd: dir.path, env })
  const address = await child.line((line) => /^listening on (\S+)$/.exec(line)?.[1] ?? null, 20_000)
  const stats = async (): Promise<ExporterStats & { nowMs: number }> =>
    (await fetch(`${address}/stats`)).json()
  return { at: address, stats, child }
}
type Site = Awaited<ReturnType<typeof startSite>>

let sentCount = 0
/** One request by an agent: everything that its sender sees, without the date. */
async function ask({ at: address }: Site): Promise<unknown> {
  const headers = { 'user-agent': agents[sentCount % agents.length]! }
  const answer = await fetch(`${address}/p/${sentCount++}`, { headers })
  const fields = [...answer.headers].filter(([name]) => name !== 'date')
  return { status: answer.status, fields, body: await answer.json() }
}

/** Waits until `read` gives the same value three times. */
async function settled(read: () => Promise<number>): Promise<number> {
  for (let last = -1, repeats = 0; ; await Bun.sleep(20)) {
    const value = await read()
    repeats = value === last ? repeats + 1 : 0
    last = value
    if (repeats === 3) return value
  }
}

test('nothing is lost or doubled, also when the site is killed meanwhile', async () => {
  using dir = tempDir('outage')
  const entrypoints = [join(root, 'tests/support/outage-site.ts')]
  await Bun.build({ entrypoints, outdir: dir.path, target: 'node', external: ['express'] })
  symlinkSync(join(root, 'node_modules'), dir.join('node_modules'))
  let appliance = await startAppliance({ dataDir: dir.join('data') })
  const keys = await makeKeys(appliance)
  let site = await startSite(dir, appliance.url, keys, Date.now() - 1.5 * hourMs)

  const idsBefore: unknown[] = []
  for (let count = 0; count < 4 * agents.length; count++) idsBefore.push(await ask(site))
  await until(async () => (await site.stats()).queued === 0)
  await appliance.kill()
  const downSinceMs = (await site.stats()).nowMs
  /** Traffic until this much time has passed on the site's clock. */
  const trafficFor = async (ms: number): Promise<void> => {
    while ((await site.stats()).nowMs < downSinceMs + ms) {
      for (let count = 0; count < 20; count++) {
        const expected = idsBefore[sentCount % agents.length]
        expect(await ask(site)).toEqual(expected)
        await Bun.sleep(2)
      }
    }
  }
  await trafficFor(hourMs / 2)
  expect(await settled(async () => (await site.stats()).queued)).toBe(sentCount - idsBefore.length)
  const halfway = await site.stats()
  site.child.signal('SIGKILL')
  await site.child.exited
  site = await startSite(dir, appliance.url, keys, halfway.nowMs)
  expect((await site.stats()).queued).toBe(halfway.queued)
  await trafficFor(hourMs)
  const down = await site.stats()
  expect(down.dropped).toBe(0)
  // Attempts went on for the whole hour, with pauses of up to 30 s.
  expect(halfway.requests + down.requests).toBeWithin(40, 2_000)

  const { host } = new URL(appliance.url)
  appliance = await startAppliance({ dataDir: appliance.dataDir, args: ['--listen', host] })
  const deadlineMs = performance.now() + 20_000
  while ((await site.stats()).queued > 0 && performance.now() < deadlineMs) await Bun.sleep(50)
  const events = []
  for await (const event of createGateway({ url: appliance.url, secretKey: keys.secretKey }).traces())
    events.push(event)
  const pages = events.filter(({ type }) => type === 'agent.requested').map(({ metadata }) => metadata?.page)
  expect(new Set(pages)).toEqual(new Set(Array.from({ length: sentCount }, (_, index) => `/p/${index}`)))
  expect(pages.length).toBe(sentCount)
  expect(new Set(events.map(({ id }) => id)).size).toBe(events.length)
  site.child.signal('SIGKILL')
  await appliance.stop()
}, 90_000)
