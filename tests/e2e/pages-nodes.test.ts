/** Settings, System on nodes that share a database: the list of nodes, their states, versions and backlog. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { openStore } from '../../db/open.ts'
import type { NodeReport } from '../../db/contract/nodes.ts'
import type { Store } from '../../db/contract/store.ts'
import { type Appliance, startAppliance } from '../support/binary.ts'
import { closeBrowser } from '../support/browser.ts'
import { picture } from '../support/picture.ts'
import { database } from '../support/postgres.ts'
import { tempDir } from '../support/temp-dir.ts'
import { ownerEnv, withOwner } from './dashboard-actions.ts'
import { expectAccessible, expectNoSidewaysScroll, waitForHeading } from './pages-actions.ts'

setDefaultTimeout(90_000)

const dir = tempDir('nodes-page')
const hostile = '<img src=x onerror=alert(1)>\u202e"edge'
let appliance: Appliance
let store: Store
let sql: (text: string) => Promise<string>

beforeAll(async () => {
  const { url, cluster, name } = await database('migrated')
  sql = (text) => cluster.sql(text, name)
  const env = { ...ownerEnv, SIGHTGLASS_DATABASE: url, SIGHTGLASS_KEY_RING: '11'.repeat(32) }
  appliance = await startAppliance({ dataDir: dir.join('one'), env, args: ['--node-name', 'web-1'] })
  store = await openStore({ folder: dir.join('two'), now: Date.now(), shared: { url, node: 'test' } })
})
afterAll(async () => {
  await closeBrowser()
  await store.close()
  await appliance.stop()
  dir.remove()
})

const looks = [
  { viewport: { width: 1440, height: 900 }, colorScheme: 'light' as const },
  { viewport: { width: 390, height: 844 }, colorScheme: 'dark' as const },
  // Only for pictures: the rules that these differ in are tested for every page.
  ...(process.env['SIGHTGLASS_PICTURES'] === '1'
    ? [
        { viewport: { width: 1440, height: 900 }, colorScheme: 'dark' as const },
        { viewport: { width: 390, height: 844 }, colorScheme: 'light' as const },
      ]
    : []),
]

const healthy: NodeReport = {
  aheadMs: 120,
  queuedBytes: 0,
  queuedMs: 0,
  viewMs: 180,
  isEnding: false,
  problem: null,
}

async function join(name: string, version: string, report: Partial<NodeReport>): Promise<void> {
  const now = Date.now()
  await store.nodes.register({ node: { name, version, role: 'ingest' }, now })
  await store.nodes.heartbeat({ name, report: { ...healthy, ...report }, now })
}

test('one node of a shared database is listed with the work that waits', async () => {
  await withOwner(
    `${appliance.url}/settings/system`,
    async (page) => {
      await waitForHeading(page, 'Settings')
      await page.getByRole('region', { name: 'Nodes' }).waitFor()
      const rows = page.getByRole('region', { name: 'Nodes' }).locator('tbody tr')
      expect(await rows.count()).toBe(1)
      expect(await rows.first().innerText()).toMatch(/web-1\s+answers this page\s+running/)
      expect(await page.getByText('Events to batch for webhooks').isVisible()).toBe(true)
      await page.getByRole('region', { name: 'Health checks' }).waitFor()
      await picture(page, 'nodes-1')
    },
    looks[0],
  )
})

test('backups of a shared database are made elsewhere, and the page says how', async () => {
  await withOwner(`${appliance.url}/settings/backups`, async (page) => {
    await page.getByText('back up with pg_dump or pgBackRest').waitFor()
    expect(await page.getByRole('button', { name: 'Back up now' }).count()).toBe(0)
    await picture(page, 'nodes-backups')
  })
})

test('of three nodes one is missing, one has problems and a name of markup, and versions differ', async () => {
  const problem = 'background work has failed for 40 s (read_only): organization org_1: permission denied'
  await join('core-2', '0.0.9', { aheadMs: -7_400 })
  await sql(`UPDATE sightglass.node SET seen_at_ms = seen_at_ms - 600000 WHERE name = 'core-2'`)
  for (const look of looks) {
    await join(hostile, '9.0.0', {
      problem,
      queuedBytes: 3_400_000,
      queuedMs: 2_100,
      viewMs: 640,
      aheadMs: 6_000,
    })
    await withOwner(
      `${appliance.url}/settings/system`,
      async (page) => {
        const region = page.getByRole('region', { name: 'Nodes' })
        await region.getByText('missing').waitFor()
        await page.getByRole('region', { name: 'Health checks' }).waitFor()
        const text = await region.innerText()
        for (const part of ['web-1', 'missing', '7.4 s behind', '<img src=x', '0.0.9', '3.4 MB, 2.1 s'])
          expect(text).toContain(part)
        const notices = await page.getByRole('status').filter({ hasText: 'different versions' }).innerText()
        for (const part of [
          '2 versions',
          '0.1.0, 9.0.0',
          problem,
          'core-2: missing, last seen 10 min ago',
          'its clock is 6.0 s ahead of the database',
        ])
          expect(notices).toContain(part)
        expect(await region.locator('img').count()).toBe(0)
        await expectNoSidewaysScroll(page)
        await expectAccessible(region)
        await picture(page, `nodes-3-${look.viewport.width}-${look.colorScheme}`)
      },
      look,
    )
  }
})
