/** Reports of the executable: made, opened from a file without a request, and verified with and without Sightglass. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { generateKeyPairSync, sign } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { type Appliance, cli } from '../support/binary.ts'
import { browser, closeBrowser } from '../support/browser.ts'
import { event } from '../support/events.ts'
import { picture } from '../support/picture.ts'
import { tempDir } from '../support/temp-dir.ts'
import { ingestKey, send, startWithOwner, withOwner } from './dashboard-actions.ts'
import { expectAccessible } from './pages-actions.ts'

const files = tempDir('reports')
let appliance: Appliance

beforeAll(async () => {
  appliance = await startWithOwner()
  const recent = (index: number) => new Date(Date.now() - index * 600_000).toISOString()
  const events = Array.from({ length: 300 }, (_, index) =>
    event(`evt_${index}`, { occurredAt: recent(index), type: 'agent.requested' }),
  )
  await send(appliance.url, await ingestKey(appliance), events)
}, 60_000)
afterAll(async () => {
  await closeBrowser()
  await appliance.stop()
  files.remove()
})

function changed(path: string): string {
  const text = readFileSync(path, 'utf8')
  const changedPath = files.join('changed.html')
  writeFileSync(changedPath, text.replace('>300<', '>301<'))
  expect(readFileSync(changedPath, 'utf8')).not.toBe(text)
  return changedPath
}

const proofForm = /(?<=id="sightglass-proof">).*(?=<\/script>)/

function withProof(path: string, proof: string): string {
  const proofPath = files.join('proof.html')
  writeFileSync(
    proofPath,
    readFileSync(path, 'utf8').replace(proofForm, () => proof),
  )
  return proofPath
}

/** A proof whose signature is sound, of a key that anybody can make. */
function signedWithoutNumber(path: string): string {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const proof = JSON.parse(proofForm.exec(readFileSync(path, 'utf8'))![0]) as { [name: string]: unknown }
  const { orgId, org, since, until, at: signedAt, digest } = proof
  const text = JSON.stringify(['sightglass-report-1', orgId, org, since, until, signedAt, null, digest])
  const signature = sign(null, Buffer.from(text), privateKey).toString('base64url')
  return JSON.stringify({ ...proof, events: null, key: publicKey.export({ format: 'jwk' }).x, signature })
}

test('made by the command line, with and without a server, and verified by it', async () => {
  const out = files.join('cli.html')
  const reportResult = await appliance.cli('report', 'create', '--out', out)
  expect([reportResult.code, reportResult.stderr]).toEqual([0, ''])
  expect(reportResult.stdout).toMatch(/^Wrote 300 events, \S+ to \S+, to .*cli\.html\. Signed by \S{43}\.\n$/)
  const key = /by (\S{43})\./.exec(reportResult.stdout)![1]!
  const sound = await cli(['verify', out, `--trusted-key=${key}`])
  expect([sound.code, sound.stdout]).toEqual([0, expect.stringContaining('unchanged. Report of ')])
  const broken = await cli(['verify', changed(out)])
  expect([broken.code, broken.stdout]).toEqual([
    1,
    expect.stringContaining('It was changed after it was signed.'),
  ])
  expect((await cli(['verify', out, '--trusted-key', 'A'.repeat(43)])).stdout).toContain(
    'Another key signed it.',
  )
  const again = await appliance.cli('report', 'create', '--out', out)
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('--yes')])
  const wrong = await appliance.cli('report', 'create', '--range', 'year')
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('range must be one of')])
})

test('saved from Overview, it opens from a file without any request, in print too', async () => {
  const path = files.join('dashboard.html')
  await withOwner(`${appliance.url}/overview`, async (page) => {
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download signed report' }).click()
    await (await download).saveAs(path)
  })
  expect((await cli(['verify', path])).code).toBe(0)
  const context = await (await browser()).newContext({ viewport: { width: 1440, height: 900 } })
  try {
    const page = await context.newPage()
    const problems: string[] = []
    page.on('request', (request) => problems.push(request.url()))
    page.on('console', (message) => problems.push(message.text()))
    const url = pathToFileURL(path).href
    await page.goto(url)
    expect(problems).toEqual([url])
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toContain('Agents of ')
    expect(await page.locator('.headlines b').first().innerText()).toBe('300')
    await expectAccessible(page)
    for (const width of [390, 1440]) {
      await page.setViewportSize({ width, height: 900 })
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true)
      const heightsOf = (selector: string) =>
        page
          .locator(selector)
          .evaluateAll((elements) => elements.map((element) => element.getBoundingClientRect().height))
      expect(Math.min(...(await heightsOf('svg text')))).toBeGreaterThan(8)
      expect(new Set(await heightsOf('.headlines dt')).size).toBe(1)
      await picture(page, `report-${width}`)
    }
    expect((await page.pdf({ format: 'A4' })).length).toBeGreaterThan(10_000)
  } finally {
    await context.close()
  }
})

test('the verifier works from a file: it accepts the report, and refuses one with a changed byte', async () => {
  const report = files.join('whole.html')
  const verifier = files.join('verifier.html')
  const reportResult = await appliance.cli('report', 'create', '--out', report, '--json')
  const { key } = JSON.parse(reportResult.stdout) as { key: string }
  expect((await cli(['report', 'verifier', '--out', verifier])).code).toBe(0)
  const served = await fetch(`${appliance.url}/docs/verify-report`)
  expect(await served.text()).toBe(readFileSync(verifier, 'utf8'))
  const context = await (await browser()).newContext()
  try {
    const page = await context.newPage()
    const problems: string[] = []
    page.on('console', (message) => problems.push(message.text()))
    const url = pathToFileURL(verifier).href
    page.on('request', (request) => problems.push(...(request.url() === url ? [] : [request.url()])))
    await page.goto(url)
    await page.getByLabel('Report').setInputFiles(report)
    await page.getByText('The report is unchanged.').waitFor()
    expect(await page.locator('output').innerText()).toContain(key)
    expect(await page.locator('output').innerText()).toContain('Anyone can sign a report with their own key.')
    await expectAccessible(page)
    await picture(page, 'report-verifier')
    await page.getByLabel('Known key').fill('A'.repeat(43))
    await page.getByText('Do not trust this report. Another key signed it.').waitFor()
    await page.getByLabel('Known key').fill(key)
    await page.getByText('The report is unchanged.').waitFor()
    await page.getByLabel('Report').setInputFiles(changed(report))
    await page.getByText('Do not trust this report. It was changed after it was signed.').waitFor()
    // Malformed proofs, after a sound report whose verdict must not stay: also one that its maker signed.
    for (const proof of ['null', '[]', '7', signedWithoutNumber(report)]) {
      await page.getByLabel('Report').setInputFiles(report)
      await page.getByText('The report is unchanged.').waitFor()
      await page.getByLabel('Report').setInputFiles(withProof(report, proof))
      await page.getByText('Do not trust this report. Its proof is malformed.').waitFor()
      expect((await cli(['verify', withProof(report, proof)])).stdout).toContain('Its proof is malformed.')
    }
    const respelled = proofForm.exec(readFileSync(report, 'utf8'))![0].replace('"signature":"', '$& ')
    // A file that changed is chosen again under the same name.
    const choosing = page.waitForEvent('filechooser')
    await page.getByLabel('Report').click()
    await (await choosing).setFiles(withProof(report, respelled))
    await page.getByText('Do not trust this report. Its signature does not match.').waitFor()
    expect(problems).toEqual([])
  } finally {
    await context.close()
  }
})
