/** The database is unreachable for some seconds: senders and people see errors, the client package loses nothing. */
import { afterAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { startPostgres } from '../support/postgres.ts'
import { run } from '../support/process.ts'
import { picture } from '../support/picture.ts'
import { startWithKeys, storedIds } from './sdk-appliance.ts'
import { closeBrowser } from '../support/browser.ts'
import { goInside, waitForHeading } from './pages-actions.ts'
import { ownerEnv, withOwner } from './dashboard-actions.ts'

afterAll(closeBrowser)

const count = 200

/** A host of the client package: events for some seconds, then a flush that may wait for the database. */
const host = `
import { createIntelExporter, init } from ${JSON.stringify(join(import.meta.dir, '../../sdk/node.ts'))}
const { URL_, INGEST, PUBLISHABLE } = process.env
const exporter = createIntelExporter({ url: URL_, ingestKey: INGEST, batchEventsMax: 20 })
const client = init({ publishableKey: PUBLISHABLE, siteId: 'shop', sessionId: 's', exporters: [exporter] })
for (let index = 0; index < ${count}; index++) {
  client.trace({ id: 'e' + index, type: 'tool.executed', outcome: 'success', agent: { class: 'dom' } })
  await new Promise((resolve) => setTimeout(resolve, 25))
}
console.log(JSON.stringify({ isSent: await exporter.flush(60_000), ...exporter.stats() }))
process.exit(0)`

test('an outage of some seconds is a notice on a page, a 503 to a sender, and no loss to the client', async () => {
  const cluster = await startPostgres({ fsync: true })
  const env = { ...ownerEnv, SIGHTGLASS_DATABASE: cluster.url, SIGHTGLASS_KEY_RING: '11'.repeat(32) }
  const { appliance, keys } = await startWithKeys({ env, args: ['--node-name', 'one'] })
  const child = run([process.execPath, '-e', host], {
    cwd: import.meta.dir,
    env: { URL_: appliance.url, INGEST: keys.ingestKey, PUBLISHABLE: keys.publishableKey },
  })
  while ((await storedIds(appliance.url, keys.secretKey)).length < 20) await Bun.sleep(50)
  const visit = async (page: Page) => {
    await cluster.kill()
    const headers = { authorization: `Bearer ${keys.secretKey}` }
    const refused = await fetch(`${appliance.url}/v1/traces`, { headers })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    await goInside(page, '/logs')
    await page.getByText('The database did not answer').first().waitFor({ timeout: 15_000 })
    await picture(page, 'database-away')
    await cluster.restart()
    // Nobody clicks: the page asks again.
    await page.getByText('tool.executed').first().waitFor({ timeout: 30_000 })
  }
  await withOwner(`${appliance.url}/detect`, visit, { allow: [/503/, /Failed to load resource/] })
  expect(await child.exited).toBe(0)
  expect(JSON.parse(child.stdout())).toMatchObject({ isSent: true, dropped: 0 })
  const ids = await storedIds(appliance.url, keys.secretKey)
  expect(ids.toSorted()).toEqual(Array.from({ length: count }, (_, index) => `e${index}`).toSorted())
  expect((await appliance.stop()).code).toBe(0)
  await cluster.stop()
}, 90_000)
