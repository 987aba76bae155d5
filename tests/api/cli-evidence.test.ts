/** `evidence` of the executable: what it shows, an update that a running server judges by, and what it refuses. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { EvidencePack } from '../../sdk/judge/evidence-pack.ts'
import { loadEvidence } from '../../sdk/middleware/middleware.ts'
import { packFileText } from '../../server/evidence/pack-file.ts'
import { startAppliance, type Appliance, type Exit } from '../support/binary.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(90_000) // the executable starts several times, on a machine that may be busy

const files = tempDir('evidence')
let appliance: Appliance
beforeAll(async () => {
  appliance = await startAppliance({ args: ['--ingest-listen', '127.0.0.1:0'] })
})
afterAll(async () => {
  await appliance.stop()
  files.remove()
})

function expectSuccess({ code, stdout, stderr }: Exit): string {
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}
const evidence = async (...args: string[]): Promise<string> =>
  expectSuccess(await appliance.cli('evidence', ...args))

const bundled = readFileSync(join(import.meta.dir, '../../server/evidence/bundled-pack.json'), 'utf8')

/** A pack without a signature in which GPTBot comes from a network for documentation. */
function changedPack(): string {
  const { signature: _, ...pack } = JSON.parse(bundled) as EvidencePack & { signature: unknown }
  const lists = pack.lists.map((addressList) =>
    addressList.list === 'gptbot' ? { ...addressList, networks: ['203.0.113.0/24'] } : addressList,
  )
  const path = files.join('changed.json')
  writeFileSync(path, packFileText({ ...pack, made: new Date().toISOString(), lists }, null))
  return path
}

async function verdictOf(address: string): Promise<unknown> {
  const path = files.join('access.log')
  const userAgent = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'
  const site = `site-${crypto.randomUUID()}`
  writeFileSync(
    path,
    `${address} - - [23/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "${userAgent}"\n`,
  )
  expectSuccess(await appliance.cli('import', 'access', path, '--site', site))
  const lines = expectSuccess(await appliance.cli('export', 'traces')).split('\n')
  const event = lines.find((line) => line.includes(site) && line.includes('agent.requested'))
  return (JSON.parse(event!) as { agent: { verdict: string } }).agent.verdict
}

test('status and show', async () => {
  expect(await evidence('status')).toContain('part of this release, signed with the release key.')
  const view = JSON.parse(await evidence('status', '--json')) as { lists: unknown[]; origin: string }
  expect(view).toMatchObject({ origin: 'bundled', signed: true, problem: null })
  expect(await evidence('status', '--evidence-max-age', '1')).toContain('22 lists are older than 1 days')
  expect(await evidence('show')).toMatch(/^gptbot +OpenAI +networks +17 +2025-10-30 +2026-08-20$/m)
  expect(await evidence('show', 'gptbot')).toContain('\n  132.196.86.0/24\n')
  expect(await evidence('show', 'bing-dns')).toContain('  *.search.msn.com')
  expect(await evidence('show', '132.196.86.5')).toMatch(/^gptbot +132\.196\.86\.0\/24 +OpenAI +GPTBot$/m)
  expect(await evidence('show', '2001:db8::1')).toBe('2001:db8::1 is in no list.\n')
  const { code, stderr } = await appliance.cli('evidence', 'show', 'gptbotx')
  expect([code, stderr]).toEqual([1, expect.stringContaining('is neither an address nor a list')])
})

test('an update is in force at once, and undone', async () => {
  expect(await verdictOf('132.196.86.5')).toBe('verified')
  const path = changedPack()
  const refused = await appliance.cli('evidence', 'update', path)
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('is not signed. (use --trust')])
  const text = await evidence('update', path, '--trust')
  const today = new Date().toISOString().slice(0, 10)
  expect(text).toContain(`The pack of ${today} is in force. It is trusted without a valid signature.`)
  expect(text).toContain('  gptbot: changed, +1 −17')
  expect(await evidence('status')).toContain('by cli, not signed.')
  expect(await verdictOf('132.196.86.5')).toBe('contradicted')
  expect(await verdictOf('203.0.113.5')).toBe('verified')
  expect(await evidence('update', path, '--trust')).toBe('This pack is in force already.\n')
  expect(await evidence('update', '--bundled')).toStartWith('The pack of this release is in force.')
  expect(await verdictOf('132.196.86.5')).toBe('verified')
})

test('clients load the pack in force with its signature, from both listeners, and again only when it changed', async () => {
  const problems: string[] = []
  const onError = ({ message }: { message: string }): void => void problems.push(message)
  const load = async (options: { trust?: boolean } = {}) => {
    const source = loadEvidence({ url: appliance.url, onError, ...options })
    return (await source.load()) ? source.current()!.evidence.listOf.length : null
  }
  const networks = await load()
  expect(networks).toBeGreaterThan(3_000)
  for (const url of [appliance.url, appliance.ingestUrl!]) {
    const file = await fetch(`${url}/sdk/evidence.json`)
    expect(await file.json()).toEqual(JSON.parse(bundled))
    const { headers } = file
    expect([
      headers.get('content-type'),
      headers.get('cache-control'),
      headers.get('content-encoding'),
    ]).toEqual(['application/json', 'no-cache', 'gzip'])
    const again = await fetch(`${url}/sdk/evidence.json`, {
      headers: { 'if-none-match': headers.get('etag')! },
    })
    expect([again.status, await again.text()]).toEqual([304, ''])
  }
  await evidence('update', changedPack(), '--trust')
  const changed = readFileSync(files.join('changed.json'), 'utf8')
  expect(await (await fetch(`${appliance.url}/sdk/evidence.json`)).text()).toBe(changed)
  expect(await load()).toBeNull()
  expect(problems).toEqual([expect.stringContaining('it is not signed by a Sightglass release')])
  expect(await load({ trust: true })).toBe(networks! - 16)
  await evidence('update', '--bundled')
  expect(await load()).toBe(networks)
})

test('wrong usage', async () => {
  const refused = async (...args: string[]): Promise<[number, string]> => {
    const { code, stderr } = await appliance.cli('evidence', 'update', ...args)
    return [code, stderr]
  }
  expect(await refused()).toEqual([2, expect.stringContaining('needs a file or --bundled')])
  expect(await refused('x.json', '--bundled')).toEqual([2, expect.stringContaining('needs a file')])
  expect(await refused(files.join('none.json'))).toEqual([1, expect.stringContaining('cannot be read')])
  writeFileSync(files.join('text'), 'hello')
  expect(await refused(files.join('text'))).toEqual([1, expect.stringContaining('the file is not JSON')])
})
