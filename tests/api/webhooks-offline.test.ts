/** A machine without a network uses up no receiver's retries while its own link is down. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { startLog } from '../../server/log.ts'
import { scheduleDelivery } from '../../server/webhooks/delivery/deliveries.ts'
import { startWebhooks } from '../../server/webhooks/start.ts'
import { startReceiver } from '../support/receiver.ts'
import { testServer } from '../support/server.ts'

// Each test waits for runs and attempts, for longer on a busy machine.
setDefaultTimeout(90_000)

const script = join(import.meta.dir, '../support/attempt-once.ts')
const bare = ['unshare', '--user', '--map-root-user', '--net']
// Network namespaces exist only on Linux, and some sandboxes forbid them.
const canBeOffline = Bun.which('unshare') !== null && Bun.spawnSync([...bare, 'true']).exitCode === 0
const skipNote = canBeOffline ? '' : ' (not run: no network namespace can be made here)'

test.if(canBeOffline)(
  `unreachable addresses, names and syslog receivers are local failures${skipNote}`,
  () => {
    const urls = [
      'http://93.184.216.34/',
      'https://[2606:4700::1111]/',
      'http://receiver.example/',
      'syslog+udp://93.184.216.34',
      'syslog+tcp://93.184.216.34',
    ]
    const { stdout } = Bun.spawnSync([...bare, process.execPath, script, ...urls])
    const faults = stdout
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { code: string; isLocal: boolean })
    expect(faults.map(({ code, isLocal }) => [code, isLocal])).toEqual([
      ['network_down', true],
      ['network_down', true],
      ['resolver_down', true],
      ['network_down', true],
      ['network_down', true],
    ])
  },
)

test.if(canBeOffline)(`forbidden addresses are refused before anything is dialled${skipNote}`, () => {
  const urls = ['http://127.0.0.1/', 'http://169.254.169.254/', 'http://localhost/', 'syslog+tcp://10.0.0.1']
  const { stdout } = Bun.spawnSync([...bare, process.execPath, script, ...urls])
  const codes = stdout
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { code: string }).code)
  expect(codes).toEqual(urls.map(() => 'url_blocked'))
})

test('without a name server no retry is used up, and the delivery goes out once one answers', async () => {
  await using receiver = await startReceiver()
  await using server = await testServer()
  let isDown = false
  const { store, clock, dataDir } = server
  const webhooks = startWebhooks({
    config: {
      cron: '',
      backoffMs: [1_000, 1_000, 1_000],
      allow: ['127.0.0.1'],
      sinkDir: null,
      caFile: null,
      proxy: null,
    },
    dataDir,
    store,
    clock,
    log: startLog({ level: 'error', clock }),
    version: 'test',
    async resolver(name) {
      if (isDown) throw Object.assign(new Error(name), { code: 'EAI_AGAIN' })
      return ['127.0.0.1']
    },
  })
  const auditActor = { orgId: server.org.id, actor: 'cli' }
  const { port } = new URL(receiver.url)
  const send = (path: string) =>
    scheduleDelivery(webhooks, auditActor, { url: `http://hooks.test:${port}/ok/${path}`, payload: '{}' })
  const run = async () => {
    clock.move(2_000)
    await webhooks.run(clock.now())
    await webhooks.idle()
  }
  await send('before')
  await run()
  isDown = true
  const id = await send('meanwhile')
  for (let i = 0; i < 6; i++) await run()
  const down = (await store.webhooks.find({ orgId: auditActor.orgId, id }))!
  expect(down.delivery).toMatchObject({ status: 'pending', attempts: 0 })
  expect(down.attempts).toHaveLength(6)
  expect(new Set(down.attempts.map(({ error }) => error?.split(':')[0]))).toEqual(new Set(['resolver_down']))
  isDown = false
  await run()
  expect((await store.webhooks.find({ orgId: auditActor.orgId, id }))!.delivery).toMatchObject({
    status: 'delivered',
    attempts: 1,
  })
  expect(receiver.received('/ok/meanwhile')).toHaveLength(1)
  await webhooks.stop()
})
