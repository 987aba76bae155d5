/** Which failures of a write say that every write fails, and what ends that. */
import { expect, test } from 'bun:test'
import { StoreError, type StoreErrorKind } from '../../contract/errors.ts'
import { writeWatch } from './write-watch.ts'

const failing = (kind: StoreErrorKind) => Promise.reject(new StoreError(kind, 'refused'))
const stored = { accepted: 1, deduped: 0, rejected: [] } as never

async function failureAfter(kind: StoreErrorKind, isWritable: boolean): Promise<StoreErrorKind | null> {
  const watch = writeWatch(() => (isWritable ? Promise.resolve() : failing(kind)))
  await watch.verb(failing(kind)).catch(() => undefined)
  return watch.failure()
}

test.each(['not_writable', 'read_only', 'locked', 'unavailable'] as const)(
  '%s lasts until a small write succeeds',
  async (kind) => {
    expect(await failureAfter(kind, false)).toBe(kind)
    expect(await failureAfter(kind, true)).toBeNull()
  },
)

test.each(['conflict', 'not_found', 'internal', 'closed'] as const)(
  '%s says nothing about other writes',
  async (kind) => {
    expect(await failureAfter(kind, false)).toBeNull()
  },
)

test('on a full disk only stored events prove that there is space', async () => {
  const watch = writeWatch(() => Promise.resolve())
  await watch.append(Promise.resolve([{ kind: 'storage_full', message: 'full' } as never]))
  expect(await watch.failure()).toBe('storage_full')
  await watch.verb(Promise.resolve())
  expect(await watch.failure()).toBe('storage_full')
  await watch.append(Promise.resolve([{ accepted: 0, deduped: 1, rejected: [] } as never]))
  expect(await watch.failure()).toBe('storage_full')
  await watch.append(Promise.resolve([stored]))
  expect(await watch.failure()).toBeNull()
})

test('any number of questions cost one write', async () => {
  let writes = 0
  const watch = writeWatch(() => {
    writes++
    return failing('not_writable')
  })
  await watch.verb(failing('not_writable')).catch(() => undefined)
  const answers = await Promise.all(Array.from({ length: 100 }, () => watch.failure()))
  expect([writes, new Set(answers)]).toEqual([1, new Set<StoreErrorKind | null>(['not_writable'])])
})

test('a small write that waits for a lock does not hold up the answer', async () => {
  const watch = writeWatch(() => new Promise(() => {}))
  await watch.verb(failing('locked')).catch(() => undefined)
  expect(await watch.failure()).toBe('locked')
})
