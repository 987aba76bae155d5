/** SIGTERM under load, round after round; by hand: `bun tests/e2e/operate-terminate.ts --rounds 50`. */
import { startAppliance, type Appliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

export interface Terminated {
  codes: number[] // of each round
  acknowledged: number // events
  lost: number // of them
}

const senders = 4
const batchEvents = 5

/** Each round a server is ended while senders post; in the end everything that was acknowledged is sent once more. */
export async function terminateUnderLoad(dataDir: string, rounds: number): Promise<Terminated> {
  const acknowledged: string[] = []
  const codes: number[] = []
  let key = ''
  for (let round = 0; round < rounds; round++) {
    const appliance = await startAppliance({ dataDir })
    if (round === 0) key = await newKey(appliance)
    const sending = Array.from({ length: senders }, (_, sender) =>
      sendUntilRefused(appliance, key, `r${round}s${sender}`, acknowledged),
    )
    const countBefore = acknowledged.length
    await until(() => acknowledged.length >= countBefore + 50 + (round % 5) * 50)
    codes.push((await appliance.stop()).code)
    await Promise.all(sending)
  }
  await using appliance = await startAppliance({ dataDir })
  let lost = 0
  for (let offset = 0; offset < acknowledged.length; offset += 1_000) {
    const answer = await send(appliance, key, acknowledged.slice(offset, offset + 1_000))
    lost += ((await answer.json()) as { accepted: number }).accepted
  }
  return { codes, acknowledged: acknowledged.length, lost }
}

async function newKey(appliance: Appliance): Promise<string> {
  const keyResult = await appliance.cli('key', 'create', '--kind', 'ingest', '--label', 'x', '--json')
  return (JSON.parse(keyResult.stdout) as { key: string }).key
}

function send(appliance: Appliance, key: string, ids: string[]): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ events: ids.map((id) => event(id)) })
  return fetch(`${appliance.url}/v1/sdk/events`, { method: 'POST', headers, body })
}

async function sendUntilRefused(
  appliance: Appliance,
  key: string,
  name: string,
  acknowledged: string[],
): Promise<void> {
  for (let round = 0; ; round++) {
    const ids = Array.from({ length: batchEvents }, (_, index) => `${name}a${round}i${index}`)
    const status = await send(appliance, key, ids).then(
      (answer) => answer.status,
      () => 0, // cut: it may be stored or not
    )
    if (status !== 202) return
    acknowledged.push(...ids)
  }
}

if (import.meta.main) {
  const roundsIndex = process.argv.indexOf('--rounds')
  const rounds = roundsIndex < 0 ? 10 : Number(process.argv[roundsIndex + 1])
  using dir = tempDir('terminated')
  const { codes, acknowledged, lost } = await terminateUnderLoad(dir.join('data'), rounds)
  const badly = codes.filter((code) => code !== 0).length
  console.log(`${rounds} rounds, ${acknowledged} events acknowledged, ${lost} lost, ${badly} ended badly`)
  process.exitCode = lost === 0 && badly === 0 ? 0 : 1
}
