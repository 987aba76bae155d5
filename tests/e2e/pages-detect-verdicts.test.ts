/** An access log is enough: two commands fill Detect with verified, claimed and contradicted requests. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import type { Page } from 'playwright'
import { programs } from '../../scripts/programs.ts'
import type { Appliance } from '../support/binary.ts'
import { agentsLog, logged, loggedAgents } from '../support/agents-log.ts'
import { closeBrowser } from '../support/browser.ts'
import { folderTest } from '../support/engine.ts'
import { event } from '../support/events.ts'
import { testWith } from '../support/installed.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import { ingestKey, send, startWithOwner, withOwner } from './dashboard-actions.ts'
import { expectAccessible, expectFit, goInside, waitForHeading } from './pages-actions.ts'

const files = tempDir('verdicts')
let appliance: Appliance

beforeAll(async () => {
  appliance = await startWithOwner()
  writeFileSync(files.join('access.log'), agentsLog(Date.now()))
  await imported(files.join('access.log'), 'shop')
}, 120_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
  files.remove()
})

async function imported(path: string, site: string, ...extraArgs: string[]): Promise<void> {
  const { code, stderr } = await appliance.cli('import', 'access', path, '--site', site, ...extraArgs)
  expect([code, stderr]).toEqual([0, ''])
}

const open = (path: string, visit: (page: Page) => Promise<void>) =>
  withOwner(`${appliance.url}${path}`, visit, { viewport: { width: 1440, height: 900 } })

const total = (...verdicts: string[]): number =>
  loggedAgents
    .filter(({ verdict }) => verdicts.length === 0 || verdicts.includes(verdict))
    .reduce((sum, { requests }) => sum + requests, 0)

/** The headline with this label. */
function headline(page: Page, name: string) {
  return page.locator('.headlines > div', { has: page.getByText(name, { exact: true }) }).locator('strong')
}

const rowsOf = (page: Page, table: string): Promise<string[][]> =>
  page
    .getByRole('table', { name: table })
    .locator('tbody tr')
    .evaluateAll((rows) =>
      rows.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent?.trim() ?? '')),
    )

test('headlines, tables and impostors show what the log holds', async () => {
  await open('/detect?siteId=shop', async (page) => {
    await page.getByRole('heading', { name: 'Impostors' }).waitFor()
    const requests = total() + logged.people + logged.assets + logged.programs
    for (const [name, text] of [
      ['Requests', `${total()}`],
      ['Share of all requests', `${Math.round((100 * total()) / requests)} %`],
      ['Verified', `${total('verified')}`],
      ['Claimed', `${total('consistent', 'unverifiable')}`],
      ['Contradicted', `${total('contradicted')}`],
    ] as const)
      expect([name, await headline(page, name).textContent()]).toEqual([name, text])
    const impostors = await rowsOf(page, 'Impostors')
    expect(impostors.map(([name, count, evidence]) => [name, count, evidence])).toEqual([
      [
        'GPTBot',
        '12',
        'OpenAI publishes 17 networks (gptbot, 2025-10-30). The address is not in any of them.',
      ],
      [
        'ClaudeBot',
        '3',
        'Anthropic publishes 23 networks (anthropic, 2026-08-13). The address is not in any of them.',
      ],
    ])
    const agents = await rowsOf(page, 'Requests by agent')
    expect(agents[0]!.slice(0, 6)).toEqual(['GPTBot', 'OpenAI', '52', '69 %', '40', '0'])
    expect(agents[0]![6]).toBe('12')
    await page.getByRole('heading', { name: 'Responses by agent' }).waitFor()
    const [gptBot] = await rowsOf(page, 'Responses by agent')
    expect(gptBot!.slice(0, 4)).toEqual(['GPTBot', '52', '37', '15'])
    expect(gptBot![4]).toMatch(/^\d/)
    const pages = await rowsOf(page, 'Pages requested by agents')
    expect(pages.map(([name]) => name)).toEqual([expect.stringContaining('/products/*'), '/about'])
    await page.getByRole('heading', { name: /^Referrals/ }).waitFor()
    await expectAccessible(page)
    await expectFit(page, 'detect-verdicts')
  })
}, 60_000)

test('the first screen says who, verified or not, and how much; visits have a view of their own', async () => {
  await open('/detect?siteId=shop', async (page) => {
    const table = page.getByRole('table', { name: 'Requests by agent' })
    await table.waitFor()
    const box = (await table.boundingBox())!
    expect(box.y + box.height).toBeLessThan(900)
    const views = page.getByRole('navigation', { name: 'Views of Detect' })
    expect(await views.locator('[aria-current]').innerText()).toBe('Requests')
    expect(await headline(page, 'Visits').count()).toBe(0)
    await views.getByRole('link', { name: 'Visits' }).click()
    await headline(page, 'Visits').waitFor()
    expect(await headline(page, 'Requests').count()).toBe(0)
    expect(new URL(page.url()).search).toBe('?siteId=shop&view=visits')
    await expectAccessible(page)
    await expectFit(page, 'detect-visits')
    await page.goBack()
    await headline(page, 'Requests').waitFor()
  })
}, 60_000)

test('the share of all requests says which ones it is of, beside requests that no log has', async () => {
  await imported(files.join('access.log'), 'mixed')
  const agent = { class: 'crawler', trust: 'detected', vendor: 'OpenAI', name: 'GPTBot' }
  const occurredAt = new Date().toISOString()
  const events = Array.from({ length: 10 }, (_, n) =>
    event(`mixed-${n}`, { type: 'agent.requested', siteId: 'mixed', occurredAt, agent }),
  )
  await send(appliance.url, await ingestKey(appliance), events)
  await open('/detect?siteId=mixed', async (page) => {
    await headline(page, 'Requests')
      .filter({ hasText: new RegExp(`^${total() + 10}$`) })
      .waitFor()
    const requests = total() + logged.people + logged.assets + logged.programs
    await page.getByText(`${total()} of ${requests} requests in access logs`, { exact: true }).waitFor()
  })
}, 60_000)

test('a click on a verdict filters the page, and the address holds it; an impostor opens its events', async () => {
  await open('/detect?siteId=shop', async (page) => {
    const chart = page.locator('.chart-panel', { hasText: 'by verdict' })
    await chart.getByRole('link', { name: 'contradicted', exact: true }).click()
    await page.waitForURL((url) => url.searchParams.get('filter') === 'verdict:contradicted')
    await headline(page, 'Requests').filter({ hasText: /^15$/ }).waitFor()
    await page.locator('.chart-panel', { hasText: 'by verdict' }).getByText('purpose').click()
    await page.getByRole('heading', { name: /^Requests .*, by purpose$/ }).waitFor()
    const row = page.getByRole('table', { name: 'Impostors' }).locator('tbody tr').first()
    await row.focus()
    await page.keyboard.press('Enter')
    await page.waitForURL((url) => url.pathname === '/logs')
    const { searchParams } = new URL(page.url())
    expect(['type', 'verdict', 'vendor', 'name'].map((name) => searchParams.get(name))).toEqual([
      'agent.requested',
      'contradicted',
      'OpenAI',
      'GPTBot',
    ])
  })
}, 60_000)

test('without requests by agents none of this is shown', async () => {
  const agent = { class: 'crawler', trust: 'detected', vendor: 'OpenAI', name: 'GPTBot' }
  const occurredAt = new Date().toISOString()
  const plain = event('plain', { type: 'agent.detected', siteId: 'plain', occurredAt, agent })
  await send(appliance.url, await ingestKey(appliance), [plain])
  await open('/detect?siteId=plain', async (page) => {
    await headline(page, 'Visits').waitFor()
    for (const name of ['Requests', 'Impostors', 'Referrals'])
      expect([name, await page.getByText(name).count()]).toEqual([name, 0])
  })
}, 60_000)

folderTest(
  'an empty appliance offers the command that imports a log, and it fills the page',
  async () => {
    await using empty = await startWithOwner()
    const log = files.join('access.log')
    await withOwner(`${empty.url}/detect`, async (page) => {
      await page.getByRole('heading', { name: 'Have an access log?' }).waitFor()
      await expectAccessible(page)
      await expectFit(page, 'detect-first-log')
      const command = await page.getByLabel('Command that imports an access log').innerText()
      expect(command).toContain(`/sightglass import access /var/log/`)
      const localCommand = command.replace(/\/var\/log\/\S+/, log)
      const shell = run(['/bin/sh', '-c', localCommand], { cwd: files.path, env: {} })
      expect([await shell.exited, shell.stderr()]).toEqual([0, ''])
      await headline(page, 'Contradicted').filter({ hasText: /^15$/ }).waitFor()
    })
  },
  60_000,
)

test('names of strangers stay text and fit the page', async () => {
  const hostile = `\u202e<img src=x onerror=alert(1)> ${'long '.repeat(30)}`
  const events = Array.from({ length: 12 }, (_, n) =>
    event(`hostile-${n}`, {
      type: 'agent.requested',
      outcome: 'success',
      siteId: 'hostile',
      sessionId: 'h',
      occurredAt: new Date(Date.now() - 60_000).toISOString(),
      agent: {
        class: 'crawler',
        trust: 'detected',
        vendor: `اختبار ${hostile}`,
        name: `${hostile}${n}`,
        verdict: n % 2 === 0 ? 'contradicted' : hostile.slice(0, 60),
        purpose: '<script>',
        evidence: { method: 'address', list: hostile, networks: 1e21 },
      },
      metadata: { page: `/${'x'.repeat(300)}/${n}` },
    }),
  )
  await send(appliance.url, await ingestKey(appliance), events)
  await open('/detect?siteId=hostile', async (page) => {
    await page.getByRole('table', { name: 'Requests by agent' }).waitFor()
    expect(await page.locator('main img, main script').count()).toBe(0)
    expect((await rowsOf(page, 'Requests by agent'))[0]![0]).toContain('U+202E')
    // What a sender says of itself names no impostor.
    expect(await page.getByRole('heading', { name: 'Impostors' }).count()).toBe(0)
    await page.getByRole('heading', { name: 'Pages requested by agents' }).waitFor()
    await expectAccessible(page)
    await expectFit(page, 'detect-verdicts-hostile')
  })
}, 60_000)

/** In the log format of nginx's own packages, which ends with X-Forwarded-For. A Unix socket has no client address. */
async function crawledNginx(): Promise<string> {
  const folder = files.join('nginx')
  mkdirSync(folder)
  const socket = `${folder}/http.sock`
  const config = `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
    events {}
    http {
      client_body_temp_path ${folder}; proxy_temp_path ${folder}; fastcgi_temp_path ${folder};
      uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
      log_format main '$http_x_real - $remote_user [$time_local] "$request" '
        '$status $body_bytes_sent "$http_referer" "$http_user_agent" "$http_x_forwarded_for"';
      server { listen unix:${socket}; access_log ${folder}/access.log main; location / { return 200 "page"; } }
    }`
  writeFileSync(`${folder}/nginx.conf`, config)
  const nginx = run([programs.nginx, '-c', `${folder}/nginx.conf`, '-p', folder], { cwd: folder, env: {} })
  try {
    for (const endMs = performance.now() + 20_000; !existsSync(socket); await Bun.sleep(20))
      if (performance.now() > endMs) throw new Error('nginx did not start')
    for (const { address, userAgent } of loggedAgents) {
      const headers = { 'user-agent': userAgent, 'x-forwarded-for': address, 'x-real': '127.0.0.1' }
      const answer = await fetch('http://site.test/article', { unix: socket, headers })
      expect(await answer.text()).toBe('page')
    }
  } finally {
    nginx.signal('SIGTERM')
    await nginx.exited
  }
  return `${folder}/access.log`
}

testWith(
  'nginx',
  "Debian's nginx: an import fills Detect while it is open, in less than a minute",
  async () => {
    const log = await crawledNginx()
    await open('/detect?siteId=nginx', async (page) => {
      await waitForHeading(page, 'Detect')
      const startMs = performance.now()
      await imported(log, 'nginx', '--trusted-proxy', '127.0.0.1')
      await goInside(page, '/detect?siteId=nginx&range=24h')
      await headline(page, 'Contradicted').filter({ hasText: /^2$/ }).waitFor()
      expect(await headline(page, 'Verified').textContent()).toBe('2')
      expect(await headline(page, 'Claimed').textContent()).toBe('2')
      expect(performance.now() - startMs).toBeLessThan(60_000)
    })
  },
  90_000,
)
