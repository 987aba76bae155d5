/** Settings → Sources: a log that the server watches, a drain and syslog; before that, the commands to copy. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { appendFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { Appliance } from '../support/binary.ts'
import { closeBrowser } from '../support/browser.ts'
import { tempDir } from '../support/temp-dir.ts'
import { ingestKey, startWithOwner, withOwner } from './dashboard-actions.ts'
import { waitForHeading } from './pages-actions.ts'

// A row is found by the path of its log, which the page cuts when it is long.
const files = tempDir('sources', tmpdir())
const log = files.join('access.log')
let appliance: Appliance

beforeAll(async () => {
  const args = ['--watch', `shop=${log}`, '--listen-syslog', 'edge=udp:127.0.0.1:0']
  appliance = await startWithOwner({ args })
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
  files.remove()
})

const line = (page: string): string =>
  `203.0.113.9 - - [23/Nov/2026:10:00:00 +0000] "GET /${page} HTTP/1.1" 200 512 "-" "GPTBot/1.2"\n`

test('each log has its format, lines, problems and time; a problem ends when the log appears', async () => {
  await withOwner(`${appliance.url}/settings/sources`, async (page) => {
    await waitForHeading(page, 'Settings')
    const logs = page.getByRole('region', { name: 'Access logs' })
    const watched = logs.getByRole('row', { name: log })
    await watched.getByText('does not exist').waitFor()
    appendFileSync(log, `${line('a')}${line('b')}broken\n`)
    const headers = { authorization: `Bearer ${await ingestKey(appliance)}`, 'content-type': 'text/plain' }
    const url = `${appliance.url}/v1/sdk/access-logs?siteId=cdn`
    expect((await fetch(url, { method: 'POST', headers, body: line('c') })).status).toBe(202)
    await watched.getByText('watched', { exact: true }).waitFor()
    expect((await watched.innerText()).split(/\s*\t\s*|\n/).filter(Boolean)).toEqual(
      expect.arrayContaining([log, 'shop', 'watched', 'combined', '3', '2', '1', '0 bytes']),
    )
    await logs.getByRole('row', { name: 'Log drains and syslog' }).getByText('received').waitFor()
    const syslog = page.getByRole('region', { name: 'Syslog' })
    await syslog.getByText('udp:127.0.0.1:').waitFor()
    await page.getByText('sightglass watch /var/log/nginx/access.log --site shop', { exact: true }).waitFor()
  })
}, 60_000)
