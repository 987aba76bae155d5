/** Cached answers belong to one key and one reader, and their number is bounded. */
import { prefetchQuery, readCache, writeCache } from './query.ts'
import { afterEach, expect, test } from 'bun:test'
import type { Session } from '../api/api.ts'
import { session } from '../app/session.ts'

afterEach(() => {
  session.value = null
})

function reader(account: string, org: string): Session {
  return {
    account: { id: account, email: 'ada@example.com', operator: false },
    org: { id: org, slug: org, name: org },
    role: 'owner',
    lacksSecondFactor: false,
    version: '1',
    ingestUrl: '',
    insecure: false,
  }
}

test('a cached response is read only under its key and only by the same person', () => {
  session.value = reader('ada', 'shop')
  writeCache('detect?range=7d', 'the week')
  expect([readCache<string>('detect?range=7d'), readCache<string>('detect?range=24h')]).toEqual([
    'the week',
    null,
  ])
  session.value = reader('bob', 'shop')
  expect(readCache<string>('detect?range=7d')).toBeNull()
  session.value = reader('ada', 'blog')
  expect(readCache<string>('detect?range=7d')).toBeNull()
  session.value = reader('ada', 'shop')
  expect(readCache<string>('detect?range=7d')).toBe('the week')
})

test('a prefetch runs once and is cached only for the person who started it', async () => {
  session.value = reader('ada', 'shop')
  const asked: string[] = []
  const week = (answer: Promise<string>) => ({
    key: 'auth?range=7d',
    fetch: () => {
      asked.push('auth?range=7d')
      return answer
    },
  })
  expect(await prefetchQuery(week(Promise.resolve('the week')))).toBe('the week')
  expect([await prefetchQuery(week(Promise.resolve('another'))), asked.length]).toEqual(['the week', 1])
  session.value = reader('bob', 'shop')
  const late = Promise.withResolvers<string>()
  const asking = prefetchQuery(week(late.promise))
  session.value = reader('eve', 'blog')
  late.resolve('the week of bob')
  await asking
  expect(readCache<string>('auth?range=7d')).toBeNull()
})

test('the oldest responses leave the cache first', () => {
  session.value = reader('ada', 'shop')
  writeCache('first', 1)
  for (let n = 0; n < 63; n++) writeCache(`further ${n}`, n)
  expect(readCache<number>('first')).toBe(1)
  writeCache('one more', 1)
  expect([readCache<number>('first'), readCache<number>('further 0'), readCache<number>('one more')]).toEqual(
    [null, 0, 1],
  )
})
