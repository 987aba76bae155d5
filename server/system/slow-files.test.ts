/** Operations on files that hang: callers go on, and others are not starved of threads. */
import { expect, test } from 'bun:test'
import { withinTime } from './slow-files.ts'

const never = () => Promise.withResolvers<string>()

test('two operations run at a time, the others in their order', async () => {
  const order: string[] = []
  let running = 0
  let most = 0
  const work = (name: string) => async () => {
    most = Math.max(most, ++running)
    await Bun.sleep(1)
    running--
    order.push(name)
    return name
  }
  const names = Array.from({ length: 9 }, (_, number) => `file-${number}`)
  const results = names.map((name) => withinTime({ path: `/logs/${name}` }, work(name)))
  expect(await Promise.all(results)).toEqual(names)
  expect([most, order]).toEqual([2, names])
})

test('an error passes on, and frees its place', async () => {
  const fail = () => Promise.reject(new Error('EIO'))
  for (let round = 0; round < 5; round++)
    expect(await withinTime({ path: '/logs/a' }, fail).catch((error: Error) => error.message)).toBe('EIO')
  expect(await withinTime({ path: '/logs/a' }, async () => 'read')).toBe('read')
})

test('a folder that hangs is not asked again, two of them stop all, and an answer ends that', async () => {
  const { shortenWaits } = await import('./slow-files.ts')
  shortenWaits() // the long wait of a running server is not waited for
  const first = never()
  const second = never()
  const late: string[] = []
  const discard = (text: string) => void late.push(text)
  const read = (path: string, work: () => Promise<string>) =>
    withinTime({ path, discard }, work).catch((error: Error) => error.message)
  expect(await read('/nfs/a', () => first.promise)).toBe('does not answer: its file system hangs')
  let askedCount = 0
  const count = async () => `asked ${++askedCount}`
  expect(await read('/nfs/b', count)).toBe('does not answer: its file system hangs')
  expect(await read('/local/a', count)).toBe('asked 1')
  expect(await read('/smb/a', () => second.promise)).toBe('does not answer: its file system hangs')
  expect(await read('/local/a', count)).toBe('is not tried: the file systems of other files hang')
  first.resolve('open file of nfs')
  await Bun.sleep(0)
  expect([late, await read('/local/a', count), await read('/nfs/b', count)]).toEqual([
    ['open file of nfs'],
    'asked 2',
    'asked 3',
  ])
  second.resolve('open file of smb')
})
