/** Nodes under load whose database crashes and of which one is killed: acknowledged events are stored once. */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { startPostgres } from '../support/postgres.ts'
import { tempDir } from '../support/temp-dir.ts'

const senders = 6
const batchesEach = 40
const batchEvents = 10

test('events that two nodes acknowledged through a crash of everything are stored once', async () => {
  const cluster = await startPostgres({ fsync: true })
  using dir = tempDir('nodes')
  writeFileSync(dir.join('keys'), '11'.repeat(32), { mode: 0o600 })
  const env = { SIGHTGLASS_DATABASE: cluster.url, SIGHTGLASS_KEY_FILE: dir.join('keys') }
  const start = (name: string) =>
    startAppliance({ dataDir: dir.join(name), env, args: ['--node-name', name] })
  const nodes: Appliance[] = [await start('one'), await start('two')]
  const keyExit = await nodes[0]!.cli('key', 'create', '--kind', 'ingest', '--label', 'in', '--json')
  const { key } = JSON.parse(keyExit.stdout) as { key: string }

  const statuses = new Set<number>()
  let sentCount = 0
  /** Sends again, to the other node, until it is acknowledged. */
  async function deliver(ids: string[], sender: number): Promise<void> {
    const body = JSON.stringify({ events: ids.map((id) => event(id)) })
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    for (let tries = 0; ; tries++) {
      const to = nodes[(sender + tries) % nodes.length]!
      const answer = await fetch(`${to.url}/v1/sdk/events`, { method: 'POST', headers, body }).catch(
        () => null,
      )
      if (answer !== null) statuses.add(answer.status)
      if (answer?.status === 503) expect(answer.headers.get('retry-after')).not.toBe(null)
      if (answer !== null && answer.status < 300) return
      await Bun.sleep(20)
    }
  }
  async function send(sender: number): Promise<void> {
    for (let batch = 0; batch < batchesEach; batch++) {
      await deliver(
        Array.from({ length: batchEvents }, (_, index) => `evt_${sender}_${batch}_${index}`),
        sender,
      )
      sentCount += 1
    }
  }
  const reached = async (share: number) => {
    while (sentCount < senders * batchesEach * share) await Bun.sleep(5)
  }
  const sending = Promise.all(Array.from({ length: senders }, (_, sender) => send(sender)))
  await reached(0.2)
  await cluster.kill()
  await Bun.sleep(300)
  expect((await fetch(`${nodes[0]!.url}/readyz`)).status).toBe(503)
  await cluster.restart()
  await reached(0.5)
  await nodes[1]!.kill()
  nodes[1] = await start('two')
  await sending

  expect([...statuses].filter((status) => status >= 300 && status !== 503 && status !== 401)).toEqual([])
  const verdict = await nodes[0]!.cli('verify', '--json')
  const { events } = JSON.parse(verdict.stdout) as { events: { orgs: { events: number }[] } }
  expect([verdict.code, events.orgs[0]!.events]).toEqual([0, senders * batchesEach * batchEvents])
  expect(await cluster.sql('SELECT last_seq FROM sightglass.event_org')).toBe(
    String(senders * batchesEach * batchEvents),
  )
  for (const node of nodes) expect((await node.stop()).code).toBe(0)
  await cluster.stop()
}, 120_000)
