/** The webhook verbs of the executable, without and beside a server, with a real receiver. */
import { expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { Webhook } from 'standardwebhooks'
import { cli, startAppliance, type Exit } from '../support/binary.ts'
import { startReceiver } from '../support/receiver.ts'
import { tempDir } from '../support/temp-dir.ts'
import { folderTest, isOnPostgres } from '../support/engine.ts'

function answer<T>({ code, stdout, stderr }: Exit): T {
  if (code !== 0) throw new Error(`exit ${code}: ${stderr}`)
  return JSON.parse(stdout) as T
}
interface EndpointJson {
  id: string
  url: string
  status: string
  types: string[]
}

const quick = [
  '--dispatch-cron',
  '* * * * * *',
  '--webhook-backoff',
  '1s,1s,1s',
  '--webhook-allow',
  '127.0.0.0/8',
]

test('a pending delivery says why it waits: without a server, and beside one whose receiver hangs', async () => {
  await using receiver = await startReceiver()
  using folder = tempDir('webhook-waiting')
  if (!isOnPostgres) {
    const offline = async (...args: string[]) => cli(['webhook', ...args, '--data-dir', folder.path])
    const url = ['https://hooks.example.com/in', '--org', 'default']
    answer(await offline('test', ...url, '--json'))
    const listed = await offline('list')
    expect(listed.stdout).toContain('Due. The next run of the dispatcher sends it')
    const json = answer<{ deliveries: { waitingFor: object }[] }>(await offline('list', '--json'))
    expect(json.deliveries.map(({ waitingFor }) => waitingFor)).toEqual([{ reason: 'dispatch' }])
  }
  await using appliance = await startAppliance({ args: quick })
  answer(await appliance.cli('webhook', 'test', `${receiver.url}/hang`, '--json'))
  await receiver.wait('/hang', 1)
  const beside = await appliance.cli('webhook', 'list')
  expect(beside.stdout).toMatch(
    /  Waits for the response of the receiver until \d{4}-\d\d-\d\d \d\d:\d\d UTC  /,
  )
}, 90_000)

test('beside a server: secret, test, list, show, endpoints and their states', async () => {
  await using receiver = await startReceiver()
  await using appliance = await startAppliance({ args: quick })
  const run = async <T>(...args: string[]) => answer<T>(await appliance.cli('webhook', ...args, '--json'))
  const { secret } = await run<{ secret: string }>('secret', '--org', 'default')
  expect(secret).toMatch(/^whsec_/)
  expect((await run<{ secret: string }>('secret')).secret).toBe(secret)
  const { deliveryId } = await run<{ deliveryId: string }>(
    'test',
    `${receiver.url}/ok`,
    '--payload',
    '{"n":1}',
  )
  const [request] = await receiver.wait('/ok', 1)
  expect(new Webhook(secret).verify(request!.body, request!.headers)).toEqual({ n: 1 })
  const rotated = await run<{ secret: string; oldSecretUntil: string }>('secret', '--rotate', '--yes')
  expect(rotated.secret).not.toBe(secret)
  expect(Date.parse(rotated.oldSecretUntil)).toBeGreaterThan(Date.now() + 23 * 3_600_000)

  await run('test', `${receiver.url}/ok/two`)
  const [signedMessage] = await receiver.wait('/ok/two', 1)
  for (const signingSecret of [secret, rotated.secret]) {
    expect(new Webhook(signingSecret).verify(signedMessage!.body, signedMessage!.headers)).toBeTruthy()
  }
  const shown = await run<{ id: string; status: string; attemptLog: unknown[] }>('show', deliveryId)
  expect(shown).toMatchObject({ id: deliveryId, status: 'delivered', attemptLog: [{ status: 200 }] })
  const { deliveries } = await run<{ deliveries: { id: string }[] }>('list', '--status', 'delivered')
  expect(deliveries.map(({ id }) => id)).toContain(deliveryId)

  const added = await run<{ endpoint: EndpointJson; secret: string }>(
    'add',
    `${receiver.url}/ok/ep`,
    '--type',
    'authz.*',
  )
  expect(added.endpoint).toMatchObject({ status: 'active', types: ['authz.*'] })
  const { id } = added.endpoint
  expect((await run<{ endpoint: EndpointJson }>('pause', id)).endpoint.status).toBe('paused')
  expect((await run<{ endpoint: EndpointJson }>('resume', id)).endpoint.status).toBe('active')
  expect((await run<{ secret: string }>('rotate-secret', id, '--yes')).secret).not.toBe(added.secret)
  expect((await run<{ endpoints: EndpointJson[] }>('endpoints')).endpoints).toHaveLength(1)
  const ranged = await run<{ endpoint: { position: number } }>('replay', id, '--from', '0', '--until', '0')
  expect(ranged.endpoint.position).toBe(0)
  expect((await appliance.cli('webhook', 'replay', id, '--from', 'then')).stderr).toContain('from must be')
  expect(await run<{ ok: boolean; id: string }>('remove', id)).toEqual({ ok: true, id })
  const replay = await run<{ ok: boolean; replayed: number }>('replay', deliveryId)
  expect(replay).toEqual({ ok: true, replayed: 1 })
  expect(await receiver.wait('/ok', 3)).toBeDefined()
  expect(appliance.stderr()).not.toContain(secret)
}, 90_000)

test('without a server: the same results, and lists write nothing', async () => {
  using folder = tempDir('webhook-cli')
  const dataDir = folder.join('data')
  const run = (...args: string[]) => cli(['webhook', ...args, '--json'], { dataDir })
  expect(answer<{ secret: string }>(await run('secret')).secret).toMatch(/^whsec_/)
  expect(existsSync(folder.join('data', 'secret.key'))).toBe(!isOnPostgres) // nodes have a key ring
  const blocked = await run('test', 'http://10.0.0.1/')
  expect([blocked.code, blocked.stderr]).toEqual([1, expect.stringContaining('not a public address')])
  answer(await run('test', 'http://10.0.0.1/', '--webhook-allow', '10.0.0.0/8'))
  expect(answer<{ deliveries: unknown[] }>(await run('list', '--status', 'pending')).deliveries).toHaveLength(
    1,
  )
  answer(await run('add', 'https://hooks.invalid/in'))
  const text = await cli(['webhook', 'endpoints'], { dataDir })
  expect(text.stdout).toContain('https://hooks.invalid/in')

  using otherFolder = tempDir('webhook-cli')
  const orgExit = await cli(['org', 'create', '--name', 'Only'], { dataDir: otherFolder.join('data') })
  expect(orgExit.code).toBe(0)
  expect((await cli(['webhook', 'list'], { dataDir: otherFolder.join('data') })).code).toBe(0)
  expect(existsSync(otherFolder.join('data', 'secret.key'))).toBe(false)
}, 90_000)

folderTest(
  'with a key ring: the folder gets no key file, and the newest key encrypts',
  async () => {
    using folder = tempDir('webhook-ring')
    const dataDir = folder.join('data')
    const path = folder.join('keys')
    const older = '11'.repeat(32)
    const newer = '22'.repeat(32)
    const run = (...args: string[]) =>
      cli([...args, '--json'], { dataDir, env: { SIGHTGLASS_KEY_FILE: path } })
    writeFileSync(path, older)
    const { secret } = answer<{ secret: string }>(await run('webhook', 'secret'))
    expect(existsSync(folder.join('data', 'secret.key'))).toBe(false)
    const bare = await cli(['webhook', 'secret'], { dataDir })
    expect([bare.code, bare.stderr]).toEqual([1, expect.stringContaining('secret.key is missing')])
    writeFileSync(path, `${newer}\n${older}`)
    expect(answer<{ secret: string }>(await run('webhook', 'secret')).secret).toBe(secret)
    const { path: backup } = answer<{ path: string }>(await run('backup', 'create'))
    // The backup needs the newest key, which the ring of another machine also holds.
    const restore = (dataDir: string, env: Record<string, string>) =>
      cli(['restore', backup, '--dry-run', '--json'], { dataDir, env })
    const elsewhere = answer<{ warnings: string[] }>(
      await restore(folder.join('a'), { SIGHTGLASS_KEY_RING: newer }),
    )
    expect(elsewhere.warnings.join(' ')).not.toContain('secret.key')
    const plainAnswer = answer<{ warnings: string[] }>(await restore(folder.join('b'), {}))
    expect(plainAnswer.warnings.join(' ')).toContain('secret.key')
    // A folder with a key of its own keeps it: the ring must hold it too.
    writeFileSync(folder.join('data', 'secret.key'), '33'.repeat(32))
    const lacking = await run('webhook', 'secret')
    expect([lacking.code, lacking.stderr]).toEqual([1, expect.stringContaining('The key ring lacks a key')])
  },
  90_000,
)

test('an endpoint with a mistyped event type, its own retry delays and a test; a secret is rotated only with --yes', async () => {
  await using receiver = await startReceiver()
  await using appliance = await startAppliance({ args: quick })
  const webhook = (...args: string[]) => appliance.cli('webhook', ...args)
  const add = [
    'add',
    `${receiver.url}/ok/own`,
    '--type',
    'agent.detcted,tool.*',
    '--retry-waits',
    '60s,5m,1h,2h',
  ]
  const text = await webhook(...add)
  expect([text.code, text.stdout]).toEqual([
    0,
    expect.stringContaining('Warning: No event has the type agent.detcted yet. Did you mean agent.detected?'),
  ])
  const creation = answer<{
    endpoint: EndpointJson & { retryWaits: number[] }
    secret: string
    warnings: object[]
  }>(await webhook(...add, '--json'))
  expect([creation.endpoint.retryWaits, creation.warnings.length]).toEqual([[60, 300, 3_600, 7_200], 1])
  const { id } = creation.endpoint
  answer(await webhook('test', id, '--json'))
  const [sentMessage] = await receiver.wait('/ok/own', 1)
  expect(new Webhook(creation.secret).verify(sentMessage!.body, sentMessage!.headers)).toMatchObject({
    data: { sequence: 0, test: true },
  })
  for (const args of [
    ['rotate-secret', id],
    ['secret', '--rotate'],
  ]) {
    const { code, stderr } = await webhook(...args)
    expect([args, code, stderr]).toEqual([args, 2, expect.stringContaining('--yes')])
  }
  answer(await webhook('rotate-secret', id, '--yes', '--json'))
  const nine = await webhook('add', `${receiver.url}/ok`, '--retry-waits', '1s,1s,1s,1s,1s,1s,1s,1s,1s')
  expect([nine.code, nine.stderr]).toEqual([
    1,
    expect.stringContaining('retryWaits must have at most 8 durations'),
  ])
}, 90_000)

test('wrong usage is exit 2 with a one-line error', async () => {
  for (const args of [
    ['webhook'],
    ['webhook', 'test'],
    ['webhook', 'pause'],
    ['webhook', 'list', '--status', 'done'],
    ['webhook', 'test', 'http://example.com/', '--payload', '[1]'],
    ['webhook', 'replay'],
    ['webhook', 'replay', '--from', '5'],
    ['webhook', 'replay', 'ep_x', '--until', '5'],
    ['serve', '--dispatch-cron', 'soon'],
    ['serve', '--dispatch-cron', '0 0 31 2 *'],
    ['serve', '--webhook-backoff', '1s,1s'],
    ['serve', '--webhook-backoff', '1s,1s,2d'],
    ['serve', '--webhook-allow', 'everything'],
  ]) {
    using folder = tempDir('webhook-cli')
    const exit = await cli(args, { dataDir: folder.join('data') })
    expect([args.join(' '), exit.code, exit.stderr]).toEqual([
      args.join(' '),
      2,
      expect.stringMatching(/^sightglass: /),
    ])
  }
}, 90_000)
