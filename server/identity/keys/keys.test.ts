/** The last use of a key is exact to the minute, and the address is asked for once a second. */
import { expect, test } from 'bun:test'
import { makeLastUses } from './keys.ts'
import type { ApiKey, Store } from '../../../db/contract/store.ts'

const minuteMs = 60_000
const key = { id: 'key_a', lastUsedAtMs: null, lastUsedAddress: null } as ApiKey

function watched() {
  const touched: unknown[] = []
  const touch: Store['keys']['touch'] = async (uses) => void touched.push(...uses)
  const uses = makeLastUses({ keys: { touch } as Store['keys'] })
  let lookupCount = 0
  return {
    touched,
    flush: uses.flush,
    asked: () => lookupCount,
    use(atMs: number, address: string): void {
      const sender = () => {
        lookupCount++
        return { address, secure: false }
      }
      uses.used(key, atMs, { sender })
    },
  }
}

test('of many uses within a second one is asked for its address', async () => {
  const { use, asked: lookupCount, touched, flush } = watched()
  for (let ms = 0; ms < 2_500; ms++) use(10 * minuteMs + ms, `192.0.2.${Math.floor(ms / 1_000)}`)
  expect(lookupCount()).toBe(3)
  await flush()
  expect(touched).toEqual([{ keyId: 'key_a', atMs: 10 * minuteMs, address: '192.0.2.2' }])
})

test('a use in the next minute counts, however soon, and one after the clock was set back', async () => {
  const { use, touched, flush } = watched()
  use(11 * minuteMs - 1, '192.0.2.1')
  use(11 * minuteMs, '192.0.2.2')
  await flush()
  use(5 * minuteMs, '192.0.2.3')
  await flush()
  expect(touched).toEqual([
    { keyId: 'key_a', atMs: 11 * minuteMs, address: '192.0.2.2' },
    { keyId: 'key_a', atMs: 5 * minuteMs, address: '192.0.2.3' },
  ])
})
