/** Remembered answers: to the same question of the same reader only, and not without end. */
import { afterEach, expect, test } from 'bun:test'
import type { Session } from '../api/api.ts'
import { askAhead, recall, remember } from './query-cache.ts'
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

test('an answer is recalled for its own question, and for nobody else in the same tab', () => {
  session.value = reader('ada', 'shop')
  remember('detect?range=7d', 'the week')
  expect([recall<string>('detect?range=7d'), recall<string>('detect?range=24h')]).toEqual(['the week', null])
  session.value = reader('bob', 'shop')
  expect(recall<string>('detect?range=7d')).toBeNull()
  session.value = reader('ada', 'blog')
  expect(recall<string>('detect?range=7d')).toBeNull()
  session.value = reader('ada', 'shop')
  expect(recall<string>('detect?range=7d')).toBe('the week')
})

test('what is asked ahead is asked once, and kept for whoever asked it', async () => {
  session.value = reader('ada', 'shop')
  const asked: string[] = []
  const week = (answer: Promise<string>) => ({
    text: 'auth?range=7d',
    ask: () => {
      asked.push('auth?range=7d')
      return answer
    },
  })
  expect(await askAhead(week(Promise.resolve('the week')))).toBe('the week')
  expect([await askAhead(week(Promise.resolve('another'))), asked.length]).toEqual(['the week', 1])
  session.value = reader('bob', 'shop')
  const late = Promise.withResolvers<string>()
  const asking = askAhead(week(late.promise))
  session.value = reader('eve', 'blog')
  late.resolve('the week of bob')
  await asking
  expect(recall<string>('auth?range=7d')).toBeNull()
})

test('the answers given longest ago are let go', () => {
  session.value = reader('ada', 'shop')
  remember('first', 1)
  for (let n = 0; n < 63; n++) remember(`further ${n}`, n)
  expect(recall<number>('first')).toBe(1)
  remember('one more', 1)
  expect([recall<number>('first'), recall<number>('further 0'), recall<number>('one more')]).toEqual([
    null,
    0,
    1,
  ])
})
