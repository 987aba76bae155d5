/**
 * Kills the appliance, or one of two nodes, while alerts open and resolve. Run by hand: `bun tests/crash/alerts.ts
 * --rounds 50 [--nodes 2] [--seed N]`; a round has two kills. Every alert must be sent once when it opens and once when
 * it resolves, and audited once.
 */
import { parseArgs } from 'node:util'
import type { Appliance } from '../support/binary.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { tempDir } from '../support/temp-dir.ts'
import { crashNodes } from './crash-nodes.ts'
import { anySeed, seeded, type Seeded } from './seeded.ts'

export interface AlertRounds {
  alerts: number
  kills: number
  wrong: string[] // alerts without exactly one message and one audit entry of each kind
}

interface Message {
  id: string
  type: string
  incidentId: string
  group: string
}

const path = '/ok/alerts'
const waitMs = 30_000

/** A new vendor is refused in each round, and admitted again when its alert has arrived. */
export async function alertRounds(
  rounds: number,
  { below: randomBelow }: Seeded,
  nodeCount = 1,
): Promise<AlertRounds> {
  using temp = tempDir('alerts')
  await using receiver = await startReceiver()
  const crons = ['--dispatch-cron', '* * * * * *', '--webhook-backoff', '1s,1s,1s']
  const args = ['--webhook-allow', '127.0.0.0/8', ...crons]
  await using nodes = await crashNodes(nodeCount, temp, { args })
  const appliances = await nodes.start()
  let kills = 0
  const killSoon = async (): Promise<void> => {
    await Bun.sleep(randomBelow(1_500))
    const index = randomBelow(nodeCount)
    await appliances[index]!.kill()
    kills++
    appliances[index] = await nodes.startOne(index)
  }
  const anyNode = (): Appliance => appliances[randomBelow(nodeCount)]!
  try {
    const ingest = await keyOf(anyNode(), 'ingest')
    await addRule(appliances[0]!, receiver, await keyOf(appliances[0]!, 'secret'))
    for (let round = 0; round < rounds; round++) {
      await post(anyNode(), ingest, round, 3, 'blocked')
      await killSoon()
      await until(() => ofRound(receiver, round, 'alert.opened').length > 0, `alert ${round} to open`)
      await post(anyNode(), ingest, round, 4, 'success')
      await killSoon()
    }
    for (let round = 0; round < rounds; round++)
      await until(() => ofRound(receiver, round, 'alert.resolved').length > 0, `alert ${round} to resolve`)
    await Bun.sleep(2_500) // a doubled message would arrive now
    return { alerts: rounds, kills, wrong: await wrongAlerts(appliances[0]!, receiver, rounds) }
  } finally {
    await Promise.all(appliances.map((appliance) => appliance.stop()))
  }
}

async function keyOf(appliance: Appliance, kind: string): Promise<string> {
  const { stdout } = await appliance.cli('key', 'create', '--kind', kind, '--label', 'alerts', '--json')
  return (JSON.parse(stdout) as { key: string }).key
}

async function call(url: string, key: string, body: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  for (const endMs = performance.now() + 5_000; ; await Bun.sleep(100)) {
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
    if (response.ok) return response.json()
    // A new key is known to every node within a second.
    const isNew = response.status === 401 && performance.now() < endMs
    if (!isNew) throw new Error(`${response.status} ${await response.text()}`)
  }
}

async function addRule(appliance: Appliance, receiver: Receiver, key: string): Promise<void> {
  const base = `${appliance.url}/v1/webhooks`
  const endpoint = { url: receiver.url + path, types: ['sdk.error'] }
  const creation = (await call(`${base}/endpoints`, key, endpoint)) as { endpoint: { id: string } }
  const definition = {
    measure: 'share',
    of: { outcome: 'blocked' },
    windowMinutes: 5,
    groupBy: 'vendor',
    groupsMax: 100,
  }
  const condition = { kind: 'above', value: 0.5 }
  await call(`${base}/rules`, key, {
    kind: 'measure',
    name: 'Refused',
    endpointId: creation.endpoint.id,
    condition,
    ...definition,
  })
}

const post = (appliance: Appliance, key: string, round: number, count: number, outcome: string) =>
  call(`${appliance.url}/v1/sdk/events`, key, {
    events: Array.from({ length: count }, (_, n) => ({
      id: `${round}-${outcome}-${n}`,
      siteId: 'shop',
      sessionId: 's',
      type: 'agent.requested',
      outcome,
      occurredAt: new Date().toISOString(),
      agent: { vendor: `vendor ${round}` },
    })),
  })

function messages(receiver: Receiver): Message[] {
  return receiver.received(path).map(({ headers, body }) => {
    const { type, data } = JSON.parse(body) as { type: string; data: Omit<Message, 'id' | 'type'> }
    return { id: headers['webhook-id'] ?? '', type, incidentId: data.incidentId, group: data.group }
  })
}

const ofRound = (receiver: Receiver, round: number, type: string): Message[] =>
  messages(receiver).filter((message) => message.group === `vendor ${round}` && message.type === type)

async function until(holds: () => boolean, description: string): Promise<void> {
  for (const endMs = performance.now() + waitMs; !holds(); await Bun.sleep(100))
    if (performance.now() > endMs) throw new Error(`waited ${waitMs} ms for ${description}`)
}

/** An interrupted attempt may be repeated, with the same message id. */
async function wrongAlerts(appliance: Appliance, receiver: Receiver, rounds: number): Promise<string[]> {
  const { stdout } = await appliance.cli('export', 'audit', '--json')
  const { entries } = JSON.parse(stdout) as { entries: { action: string; metadata: { subject?: string } }[] }
  return Array.from({ length: rounds }, (_, round) => {
    const count = (verb: string): string => {
      const sentMessages = ofRound(receiver, round, `alert.${verb}`)
      const audited = entries.filter(
        ({ action, metadata }) =>
          action === `webhook_alert.${verb}` && metadata.subject === `vendor ${round}`,
      )
      const ids = sentMessages.map(({ id }) => id)
      const incidents = sentMessages.map(({ incidentId }) => incidentId)
      return `${new Set(ids).size}/${new Set(incidents).size}/${audited.length}`
    }
    return `alert ${round}: opened ${count('opened')}, resolved ${count('resolved')}`
  }).filter((line) => !line.endsWith('opened 1/1/1, resolved 1/1/1'))
}

if (import.meta.main) {
  const options = { rounds: { type: 'string' }, nodes: { type: 'string' }, seed: { type: 'string' } } as const
  const { values } = parseArgs({ options })
  const seed = Number(values.seed ?? anySeed())
  const result = await alertRounds(Number(values.rounds ?? 50), seeded(seed), Number(values.nodes ?? 1))
  console.log(JSON.stringify({ seed, ...result }))
  process.exit(result.wrong.length === 0 ? 0 : 1)
}
