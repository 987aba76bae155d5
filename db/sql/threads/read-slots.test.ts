/** Reads of different lanes alternate slice by slice; those of one lane wait for each other. */
import { expect, test } from 'bun:test'
import { StoreError } from '../../contract/errors.ts'
import { readSlots } from './read-slots.ts'

function turns({ deadlineMs = 10_000, connectionsMax = 8 } = {}) {
  const due: (() => void)[] = []
  const log: string[] = []
  const subject = readSlots({ deadlineMs, connectionsMax, later: (go) => due.push(go) })
  return {
    log,
    end: subject.end,
    /** Runs what is due, once. */
    turn: () => due.splice(0).forEach((go) => go()),
    /** A read of this many slices. */
    ask(name: string, verb: string, orgId: string, slices = 1): Promise<unknown> {
      const answer = subject.ask(verb, { orgId }, function* (connection) {
        for (let n = 1; n < slices; n++) {
          log.push(`${name} ${n}`)
          yield
        }
        log.push(`${name} done on ${connection}`)
        return name
      })
      answer.catch(() => {})
      return answer
    },
  }
}

test('a read begins when it arrives, whatever long reads of others are running', async () => {
  const { ask, turn, log } = turns()
  const long = [1, 2, 3].map((n) => ask(`long ${n}`, 'sessions.page', `hostile ${n}`, 3))
  expect(log).toEqual(['long 1 1', 'long 2 1', 'long 3 1'])
  expect(await ask('page', 'events.page', 'other')).toBe('page')
  expect(log.at(-1)).toBe('page done on 0') // long reads leave it free
  for (let n = 0; n < 6; n++) turn()
  expect(log.slice(4)).toEqual([
    'long 1 2',
    'long 2 2',
    'long 3 2',
    'long 1 done on 1',
    'long 2 done on 2',
    'long 3 done on 3',
  ])
  expect(await Promise.all(long)).toEqual(['long 1', 'long 2', 'long 3'])
})

test('the second read of a lane begins when the first has ended; short ones do not wait for long ones', async () => {
  const { ask, turn, log } = turns()
  const reads = [ask('first', 'sessions.page', 'org', 2), ask('second', 'sessions.page', 'org')]
  expect(await ask('page', 'events.page', 'org')).toBe('page')
  for (let n = 0; n < 3; n++) turn()
  expect(await Promise.all(reads)).toEqual(['first', 'second'])
  expect(log).toEqual(['first 1', 'page done on 0', 'first done on 1', 'second done on 1'])
})

test('without a free connection a read waits, and every read is answered', async () => {
  const { ask, turn, log } = turns({ connectionsMax: 2 })
  const answers = ['a', 'b', 'c', 'd'].map((name) => ask(name, 'sessions.page', name, 2))
  expect(log).toEqual(['a 1', 'b 1'])
  for (let n = 0; n < 10; n++) turn()
  expect(await Promise.all(answers)).toEqual(['a', 'b', 'c', 'd'])
})

test('a read ends with deadline after its own time, not after that of others', async () => {
  const subject = readSlots({ deadlineMs: 200, connectionsMax: 4 })
  const busy = (ms: number) => {
    for (const endMs = performance.now() + ms; performance.now() < endMs;);
  }
  let isUndone = false
  const late = subject.ask('sessions.page', { orgId: 'a' }, function* () {
    try {
      for (;;) {
        busy(60)
        yield
      }
    } finally {
      isUndone = true
    }
  })
  const patient = subject.ask('sessions.page', { orgId: 'b' }, function* () {
    for (let n = 0; n < 8; n++) {
      yield
    }
    return 'there'
  })
  const failure = await late.catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(StoreError)
  expect((failure as StoreError).kind).toBe('deadline')
  expect(isUndone).toBe(true)
  expect(await patient).toBe('there')
})

test('a cancelled read ends between two slices, or before its first, and reports its progress until then', async () => {
  const due: (() => void)[] = []
  const slots = readSlots({ deadlineMs: 10_000, connectionsMax: 1, later: (go) => due.push(go) })
  const shares: number[] = []
  let isUndone = false
  const running = slots.ask(
    'events.explore',
    { orgId: 'a' },
    function* () {
      try {
        for (let share = 0; ; share += 0.25) yield share
      } finally {
        isUndone = true
      }
    },
    { id: 1, report: (share) => void shares.push(share) },
  )
  const never = () => {
    throw new Error('a read began after it was cancelled')
  }
  const waiting = slots.ask('events.explore', { orgId: 'a' }, never, { id: 2, report: never })
  due.splice(0).forEach((go) => go())
  for (const id of [1, 2, 3]) slots.cancel(id)
  for (let n = 0; n < 3; n++) due.splice(0).forEach((go) => go())
  const kinds = await Promise.all(
    [running, waiting].map((answer) => answer.catch((error: StoreError) => error.kind)),
  )
  expect(kinds).toEqual(['cancelled', 'cancelled'])
  expect([shares, isUndone]).toEqual([[0, 0.25], true])
})

test('the end answers all reads, begun or not', async () => {
  const { ask, end } = turns({ connectionsMax: 1 })
  const answers = ['a', 'b', 'a'].map((name) => ask(name, 'sessions.page', name, 5))
  end(new StoreError('closed', 'the store is closed'))
  const kinds = await Promise.all(answers.map((answer) => answer.catch((error: StoreError) => error.kind)))
  expect(kinds).toEqual(['closed', 'closed', 'closed'])
})
