/** Tests the lanes: each has a few reads at the readers and one long read in all; others wait in the calling thread. */
import { expect, test } from 'bun:test'
import { readQueue } from './read-queue.ts'

function readers(count: number) {
  const requests: { reader: number; orgId: string; answer(): Promise<void> }[] = []
  const openAt = Array.from({ length: count }, () => 0)
  const ports = openAt.map((_, reader) => ({
    open: () => openAt[reader]!,
    ask(_verb: string, query: unknown) {
      openAt[reader]!++
      const { promise, resolve } = Promise.withResolvers<unknown>()
      const answer = async () => {
        openAt[reader]!--
        resolve(null)
        await Bun.sleep(0)
      }
      requests.push({ reader, orgId: (query as { orgId: string }).orgId, answer })
      return promise
    },
  }))
  return { ports, sent: requests, ask: readQueue(ports).ask }
}

test('a lane has two reads at each reader, and other lanes are sent at once', async () => {
  const { ask, sent: requests } = readers(2)
  const pages = Array.from({ length: 10 }, () => ask('events.page', { orgId: 'hostile', limit: 50 }))
  expect(requests.map(({ reader }) => reader)).toEqual([0, 1, 0, 1])
  pages.push(ask('events.page', { orgId: 'other', limit: 50 }))
  expect(requests.at(-1)?.orgId).toBe('other')
  for (let n = 0; n < 11; n++) await requests[n]!.answer()
  await Promise.all(pages)
  expect(requests.length).toBe(11)
})

test('one long read of an organization at a time, and its short ones pass it', async () => {
  const { ask, sent: requests } = readers(2)
  const sessions = [1, 2, 3].map(() => ask('sessions.page', { orgId: 'a', limit: 50 }))
  expect(requests.length).toBe(1)
  const search = ask('events.page', { orgId: 'b', limit: 50, filter: { text: 'x' } })
  expect(requests.map(({ reader }) => reader)).toEqual([1, 1]) // the reader with the lower priority
  const page = ask('events.page', { orgId: 'a', limit: 50 })
  expect(requests.map(({ reader }) => reader)).toEqual([1, 1, 0])
  for (let n = 0; n < 5; n++) await requests[n]!.answer()
  await Promise.all([...sessions, search, page])
})

test('the number of waiting reads is bounded', async () => {
  const { ask } = readers(1)
  const kinds: string[] = []
  for (let n = 0; n < 1_010; n++)
    ask('sessions.page', { orgId: 'a' }).catch((error: { kind: string }) => kinds.push(error.kind))
  await Bun.sleep(0)
  expect(kinds).toEqual(Array(9).fill('deadline'))
})

test('the last reader opens for a long read or when the others are busy, and they answer meanwhile', async () => {
  const { ports, sent: requests } = readers(2)
  const opening = Promise.withResolvers<(typeof ports)[number]>()
  let openings = 0
  const { ask, opened } = readQueue(ports.slice(0, 1), () => {
    openings++
    return openings === 1 ? Promise.reject(new Error('no file handle is free')) : opening.promise
  })
  const page = (orgId: string) => ask('events.page', { orgId, limit: 50 })
  const pages = [page('a'), page('a')]
  expect(openings).toBe(0)
  pages.push(ask('sessions.page', { orgId: 'a', limit: 50 }))
  await Bun.sleep(0)
  pages.push(page('b'))
  expect(openings).toBe(2)
  expect(requests.map(({ reader }) => reader)).toEqual([0, 0, 0, 0])
  opening.resolve(ports[1]!)
  expect(await opened()).toEqual(ports)
  pages.push(ask('sessions.page', { orgId: 'b', limit: 50 }), page('a'))
  expect(requests.map(({ reader }) => reader)).toEqual([0, 0, 0, 0, 1, 1])
  for (const { answer } of [...requests]) await answer()
  await Promise.all(pages)
})
