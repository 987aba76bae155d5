/** A refused request costs the executable a small part of an accepted one, and says when to come again. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { startAppliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { processorMs } from '../support/turns.ts'

setDefaultTimeout(120_000)

const acceptedMax = 80
const refused = 600
const eventsOfPost = 100

test('refusals beyond a rate cost less than a quarter of what they refuse', async () => {
  await using appliance = await startAppliance({ args: ['--rate-limit-ingest', `${acceptedMax}/h`] })
  const keyExit = await appliance.cli('key', 'create', '--kind', 'ingest', '--label', 'busy', '--json')
  const { key } = JSON.parse(keyExit.stdout) as { key: string }
  let posted = 0
  const post = (): Promise<Response> => {
    const events = Array.from({ length: eventsOfPost }, (_, index) => event(`post_${posted}_${index}`))
    posted++
    return fetch(`${appliance.url}/v1/sdk/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ events }),
    })
  }
  /** Processor time of the executable for each of the posts. */
  const costOf = async (posts: number, check: (answer: Response) => void): Promise<number> => {
    const msBefore = processorMs(appliance.pid)
    for (let index = 0; index < posts; index++) {
      const answer = await post()
      await answer.arrayBuffer()
      check(answer)
    }
    return (processorMs(appliance.pid) - msBefore) / posts
  }
  const acceptedMs = await costOf(acceptedMax - 10, ({ status }) => expect(status).toBe(202))
  for (let status = 202; status === 202;) status = (await post()).status
  const refusedMs = await costOf(refused, (answer) => {
    expect([answer.status, Number(answer.headers.get('retry-after')) > 0]).toEqual([429, true])
  })
  if (process.env['SIGHTGLASS_TEST_TABLE'] === '1') console.log({ acceptedMs, refusedMs })
  expect(refusedMs).toBeLessThan(acceptedMs / 4)
})
