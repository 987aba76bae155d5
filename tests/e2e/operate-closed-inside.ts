/**
 * What happens inside a machine without a network: first start, ingest, access logs from every source with verdicts and
 * robots.txt, dashboard, backup, doctor. Every packet that anything tries to send elsewhere goes to a device that only
 * counts. Run by `operate-closed.test.ts`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAppliance } from '../support/binary.ts'
import { closeBrowser, withPage } from '../support/browser.ts'
import { event } from '../support/events.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'
import { owner, withOwner } from './dashboard-actions.ts'

/** Packets that left over anything but the loopback device. */
function packetsOut(): number {
  const lines = readFileSync('/proc/net/dev', 'utf8').split('\n').slice(2)
  const devices = lines.map((line) => line.trim().split(/[:\s]+/)).filter(([name]) => name && name !== 'lo')
  return devices.reduce((sum, columns) => sum + Number(columns[10]), 0)
}

/** Proof that the counter counts: an attempt that goes nowhere. */
async function attemptOutside(): Promise<number> {
  const packetsBefore = packetsOut()
  await fetch('http://192.0.2.1/', { signal: AbortSignal.timeout(1_500) }).catch(() => {})
  return packetsOut() - packetsBefore
}

/** As web servers write it: 23/Nov/2026:10:00:00 +0000. */
function logTime(date: Date): string {
  const [, day, month, year, time] = /^\w+, (\d+) (\w+) (\d+) ([\d:]+)/.exec(date.toUTCString())!
  return `${day}/${month}/${year}:${time} +0000`
}

using temp = tempDir('closed')
const env = { SIGHTGLASS_ADMIN_EMAIL: owner.email, SIGHTGLASS_ADMIN_PASSWORD: owner.password }
const dataDir = join(temp.path, 'data')
const line = `132.196.86.5 - - [${logTime(new Date())}] "GET /docs HTTP/1.1" 200 5 "-" "GPTBot/1.2"\n`
const watched = temp.join('access.log')
const robots = temp.join('robots.txt')
writeFileSync(watched, line)
writeFileSync(robots, 'User-agent: GPTBot\nDisallow: /\n')
const sources = ['--watch', `watched=${watched}`, '--robots', `watched=${robots}`]
const syslog = ['--listen-syslog', `syslog=unix:${temp.join('syslog')}`]
const appliance = await startAppliance({ dataDir, env, args: [...sources, ...syslog] })
const { key } = JSON.parse(
  (await appliance.cli('key', 'create', '--kind', 'ingest', '--label', 'x', '--json')).stdout,
)
const posted = await fetch(`${appliance.url}/v1/sdk/events`, {
  method: 'POST',
  headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  body: JSON.stringify({ events: [event('closed_1')] }),
})
const drained = await fetch(`${appliance.url}/v1/sdk/access-logs?siteId=drained`, {
  method: 'POST',
  headers: { authorization: `Bearer ${key}`, 'content-type': 'text/plain' },
  body: line.replace('132.196.86.5', '203.0.113.9'),
})
const imported = await appliance.cli('import', 'access', watched, '--site', 'imported')
const exported = async () => (await appliance.cli('export', 'traces')).stdout
const verdicts = async () => (await exported()).match(/"verdict":"\w+"/g)?.length ?? 0
await until(async () => (await verdicts()) >= 6) // a request and a session from each of three sources
const backup = await appliance.cli('backup', 'create', '--json')
const doctor = await appliance.cli('doctor', '--json')
const packetsOfServer = packetsOut()
// The browser's own attempts are not ours to count; `withPage` fails on any request of the page to another host.
const shown = await withOwner(appliance.url, async (page) => {
  await page.goto(`${appliance.url}/logs`)
  await page.getByText('authz.evaluated').first().waitFor({ timeout: 15_000 })
  return true
})
await closeBrowser()
const stopped = await appliance.stop()
const result = {
  interfaces:
    readFileSync('/proc/net/dev', 'utf8')
      .match(/^\s*(\w+):/gm)
      ?.map((name) => name.trim())
      .sort() ?? [],
  posted: posted.status,
  drained: drained.status,
  imported: imported.code,
  backup: backup.code,
  doctor: doctor.code,
  shown,
  stopped: stopped.code,
  packetsOfServer,
  packetsOfAttempt: await attemptOutside(),
}
process.stdout.write(`${JSON.stringify(result)}\n`)
