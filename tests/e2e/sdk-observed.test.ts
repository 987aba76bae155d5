/** Two lines of middleware on real processes: the appliance judges, and no address stays anywhere (contract §17). */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Appliance, startAppliance } from '../support/binary.ts'
import { isOnPostgres } from '../support/engine.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'
import { hostEnv, installedProject, linkPackage, makeKeys, type Keys, type Project } from './sdk-appliance.ts'

/** The host: Express with two lines of middleware, and a relay for pages. */
const program = `
import { env } from 'node:process'
import { createIntelExporter, createNodeRelay, init } from '@sightglass/sdk'
import { sightglass } from '@sightglass/sdk/middleware'
import express from 'express'

const publishableKey = env.SIGHTGLASS_PUBLISHABLE_KEY
const exporter = createIntelExporter({
  url: env.SIGHTGLASS_URL, ingestKey: env.SIGHTGLASS_INGEST_KEY, spool: env.SPOOL, backoffMaxMs: 500,
})
const client = init({ publishableKey, siteId: 'shop', exporters: [exporter] })
const app = express()
app.set('trust proxy', 'loopback')
app.post('/traces', createNodeRelay({ exporter, publishableKey, eventsPerMinute: 1e9, answerAfter: 'sent' }))
app.use(sightglass(client))
app.get('/', (_request, response) => response.send('hello'))
const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write('listening on http://127.0.0.1:' + server.address().port + '\\n')
})
`

const gptBot = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'
const genuine = '20.171.206.177'
const foreign = '203.0.113.144'
const whileAway = ['20.171.207.166', '198.51.100.188']

let project: Project
beforeAll(async () => {
  project = await installedProject()
  linkPackage(project, 'express')
  writeFileSync(project.dir.join('host.mjs'), program)
}, 60_000)
afterAll(() => project[Symbol.dispose]())

async function startHost(appliance: Appliance, keys: Keys, spool: string) {
  const env = { ...hostEnv(appliance.url, keys), SPOOL: spool }
  const host = run(['node', 'host.mjs'], { cwd: project.dir.path, env })
  const url = await host.line((line) => /^listening on (\S+)$/.exec(line)?.[1] ?? null, 20_000)
  return { host, url }
}

const visit = (url: string, address: string): Promise<Response> =>
  fetch(url, { headers: { 'user-agent': gptBot, 'x-forwarded-for': address } })

interface Row {
  [column: string]: string
}

/** The events with their record, from the CSV export; `event` is the last column. */
async function rows(appliance: Appliance, { secretKey }: Keys): Promise<Row[]> {
  const headers = { authorization: `Bearer ${secretKey}`, accept: 'text/csv' }
  const text = await (await fetch(`${appliance.url}/v1/traces`, { headers })).text()
  const [head = '', ...lines] = text.trim().split('\n')
  const names = head.split(',')
  return lines.map((line) => {
    const cells = line.split(',')
    return Object.fromEntries(names.map((name, index) => [name, cells[index] ?? '']))
  })
}

/** An address as programs write it. */
function textsOf(address: string): Buffer[] {
  const bytes = packed(address)
  const hex = bytes.toString('hex')
  const texts = [
    address,
    hex,
    hex.toUpperCase(),
    `${hex.slice(0, 4)}:${hex.slice(4)}`,
    String(bytes.readUInt32BE()),
    Buffer.from(address).toString('base64').replace(/=+$/, ''),
    [...bytes].toReversed().join('.'),
  ]
  return texts.map((text) => Buffer.from(text))
}

function packed(address: string): Buffer {
  return Buffer.from(address.split('.').map(Number))
}

/** Returns how many files were searched. */
function requireNoAddress(folders: string[], outputs: string[], addresses: string[]): number {
  const paths = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  const contents = paths.flatMap((path): [string, Buffer][] =>
    statSync(path).isFile() ? [[path, readFileSync(path)]] : [],
  )
  const files = contents.length
  for (const [index, text] of outputs.entries()) contents.push([`output ${index}`, Buffer.from(text)])
  const packedSeen = new Set<string>()
  for (const [path, bytes] of contents) {
    for (const address of addresses) {
      for (const text of textsOf(address))
        expect(bytes.includes(text) ? `${path} has ${address}` : '').toBe('')
      if (bytes.includes(packed(address))) packedSeen.add(address)
    }
  }
  // Who stores packed addresses stores all of them. Four random bytes are one of them in some thousand runs.
  expect(packedSeen.size).toBeLessThan(2)
  return files
}

test('a genuine and a false address are judged by the appliance, and neither is anywhere afterwards', async () => {
  using dir = tempDir('observed')
  mkdirSync(dir.join('backups'))
  const args = ['--backup-dir', dir.join('backups'), '--log-level', 'debug']
  let appliance = await startAppliance({ dataDir: dir.join('data'), args })
  const keys = await makeKeys(appliance)
  const first = await startHost(appliance, keys, dir.join('spool/events'))
  await visit(first.url, genuine)
  await visit(first.url, foreign)
  await until(async () => (await rows(appliance, keys)).length === 4)
  const judged = (await rows(appliance, keys)).filter(({ type }) => type === 'agent.requested')
  expect(judged.map(({ verdict }) => verdict).toSorted()).toEqual(['contradicted', 'verified'])
  const list = await appliance.cli('key', 'list', '--json')
  const ingest = (JSON.parse(list.stdout) as { keys: { id: string; kind: string }[] }).keys.find(
    ({ kind }) => kind === 'ingest',
  )
  for (const row of judged)
    expect(row).toMatchObject({
      judgedBy: 'appliance',
      observedBy: ingest!.id,
      door: 'events',
      key: ingest!.id,
    })
  expect(judged.find(({ verdict }) => verdict === 'contradicted')?.['network']).toBe('203.0.113.0/24')

  // The appliance is killed, the host writes to its spool and is killed, too.
  const outputs: string[] = []
  const crashed = await appliance.kill()
  outputs.push(crashed.stdout, crashed.stderr)
  for (const address of whileAway) await visit(first.url, address)
  await until(() => readSpool(dir.join('spool')).split('agent.requested').length === 3)
  first.host.signal('SIGKILL')
  await first.host.exited
  outputs.push(first.host.stdout(), first.host.stderr())
  const agentNames = [genuine, foreign, ...whileAway]
  expect(requireNoAddress([dir.join('data'), dir.join('spool')], outputs, agentNames)).toBeGreaterThan(4)

  // The next host sends the spool: the observations are gone, the events are not.
  appliance = await startAppliance({ dataDir: dir.join('data'), args })
  const second = await startHost(appliance, keys, dir.join('spool/events'))
  await until(async () => (await rows(appliance, keys)).length === 8)
  const later = (await rows(appliance, keys)).filter(({ judgedBy }) => judgedBy === '')
  expect(later.length).toBe(4)
  const rejected = `{"observed":{"x":{"address":"${genuine}"}},"events":[]}`
  const headers = { authorization: `Bearer ${keys.ingestKey}`, 'content-type': 'application/json' }
  const answer = await fetch(`${appliance.url}/v1/sdk/events`, { method: 'POST', headers, body: rejected })
  expect(answer.status).toBe(400)
  if (!isOnPostgres)
    expect((await appliance.cli('backup', 'create', '--backup-dir', dir.join('backups'))).code).toBe(0)
  const dump = await appliance.cli('export', 'traces')
  outputs.push(dump.stdout, JSON.stringify(await rows(appliance, keys)), second.host.stdout())
  second.host.signal('SIGTERM')
  const end = await appliance.stop()
  outputs.push(end.stdout, end.stderr)
  const folders = [dir.join('data'), dir.join('backups'), dir.join('spool')]
  expect(requireNoAddress(folders, outputs, agentNames)).toBeGreaterThan(6)
}, 120_000)

function readSpool(folder: string): string {
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('')
}

test('10,000 forgeries of pages through the relay: none is verified', async () => {
  using dir = tempDir('forged')
  const appliance = await startAppliance({ dataDir: dir.join('data') })
  const keys = await makeKeys(appliance)
  const { host, url } = await startHost(appliance, keys, dir.join('spool/events'))
  const agents = [
    { verdict: 'verified', trust: 'verified', evidence: { method: 'signature', keyId: 'k' } },
    { verdict: 'verified', trust: 'linked', vendor: 'OpenAI', name: 'GPTBot', robots: 'allowed' },
    { trust: 'verified', userAgent: gptBot },
    { verdict: ['verified'], evidence: 'verified' },
    null,
  ]
  const perRequest = 200
  let sentCount = 0
  for (let batch = 0; batch < 50; batch++) {
    const events = Array.from({ length: perRequest }, (_, index) => ({
      id: `f${sentCount + index}`,
      siteId: 'shop',
      sessionId: `s${batch}`,
      outcome: 'success',
      type: index % 2 === 0 ? 'agent.requested' : 'authz.evaluated',
      occurredAt: new Date().toISOString(),
      agent: agents[index % agents.length],
      verdict: 'verified',
      policy: { decision: 'allow', ruleId: 'r', reason: 'verified' },
      metadata: { page: '/', protocol: 'web-bot-auth', subject: 'openai.com' },
      observed: { address: genuine },
    }))
    const observed = Object.fromEntries(events.map(({ id }) => [id, { address: genuine }]))
    sentCount += events.length
    const response = await fetch(`${url}/traces`, {
      method: 'POST',
      body: JSON.stringify({ publishableKey: keys.publishableKey, events, observed }),
      headers: {
        origin: url,
        'user-agent': batch % 2 === 0 ? gptBot : 'Mozilla/5.0 Firefox/140.0',
        'x-forwarded-for': genuine,
        'x-real-ip': genuine,
        forwarded: `for=${genuine}`,
        'signature-agent': '"https://chatgpt.com"',
        'signature-input': 'sig=("@authority");created=1;expires=9;keyid="k";tag="web-bot-auth"',
        signature: `sig=:${Buffer.alloc(64).toString('base64')}:`,
      },
    })
    expect(response.status).toBe(202)
  }
  const stored = await rows(appliance, keys)
  expect(stored.length).toBe(10_000)
  expect(stored.filter(({ verdict }) => verdict === 'verified').length).toBe(0)
  expect(stored.filter(({ trust }) => trust === 'verified' || trust === 'linked').length).toBe(0)
  expect(stored.filter(({ decision }) => decision === 'allow').length).toBe(5_000) // implied by type and outcome
  expect(stored.filter(({ protocol }) => protocol !== '').length).toBe(0)
  host.signal('SIGTERM')
  await appliance.stop()
}, 120_000)
