/** A server that could not listen still ran its jobs, and one of them logged a closed store above the reason. */
import { expect, test } from 'bun:test'
import type { Store } from '../../db/contract/store.ts'
import { openDataFolder } from '../../server/runtime/open-data-folder.ts'
import { testServer } from '../support/server.ts'

/** The store, which notes the calls of its parts. */
function noting(store: Store, calls: string[]): Store {
  const noted = (part: object, name: string) =>
    new Proxy(part, {
      get(target, key) {
        calls.push(`${name}.${String(key)}`)
        return Reflect.get(target, key) as unknown
      },
    })
  const parts = Object.entries(store).map(([name, part]) => [
    name,
    part instanceof Object && Object.getPrototypeOf(part) === Object.prototype ? noted(part, name) : part,
  ])
  return Object.fromEntries(parts) as unknown as Store
}

test('after a port in use ended a start, no job uses the store', async () => {
  await using first = await testServer()
  const calls: string[] = []
  let store: Store | null = null
  const starting = testServer(
    {
      listen: { host: '127.0.0.1', port: Number(new URL(first.url).port) },
      // A job for every second, which asks for due deliveries.
      webhooks: { cron: '* * * * * *', backoffMs: [], allow: [], sinkDir: null, caFile: null, proxy: null },
    },
    'quick',
    { open: async (folder, clock) => noting((store = await openDataFolder(folder, clock)), calls) },
  )
  expect(await starting.catch(String)).toContain('the port is in use')
  expect(calls).not.toEqual([])
  calls.length = 0
  await Bun.sleep(1_100)
  expect(calls).toEqual([])
  await store!.close()
})
