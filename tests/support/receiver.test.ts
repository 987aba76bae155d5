/** Tests the receiver's report: it contains every request that was answered. */
import { expect, test } from 'bun:test'
import { startReceiver } from './receiver.ts'

test('a request is in the report as soon as its answer is there', async () => {
  await using receiver = await startReceiver()
  for (let n = 1; n <= 300; n++) {
    const answer = await fetch(`${receiver.url}/ok/${n}.`, { method: 'POST', body: 'x'.repeat(n * 500) })
    expect(answer.status).toBe(200)
    expect([n, receiver.received(`/ok/${n}.`).length, receiver.received().length]).toEqual([n, 1, n])
  }
}, 30_000)
