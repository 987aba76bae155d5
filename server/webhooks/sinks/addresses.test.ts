/** One forbidden address refuses the whole name; a failing name server is distinguished from an unknown name. */
import { describe, expect, test } from 'bun:test'
import { addressGuard } from '../delivery/address-guard.ts'
import { resolveWith } from './addresses.ts'

const guard = addressGuard([])
const failing = (code: string) => Promise.reject(Object.assign(new Error(code), { code }))

test('any forbidden address refuses the whole name', async () => {
  const answers = new Map([
    ['good.test', ['1.1.1.1', '2606:4700::1111']],
    ['mixed.test', ['1.1.1.1', '10.0.0.1']],
    ['inside.test', ['::ffff:127.0.0.1']],
    ['nothing.test', []],
  ])
  const resolve = resolveWith(async (name) => answers.get(name)!, guard)
  expect(await resolve('good.test')).toEqual({ kind: 'addresses', addresses: ['1.1.1.1', '2606:4700::1111'] })
  expect(await resolve('mixed.test')).toMatchObject({ kind: 'refused', address: '10.0.0.1' })
  expect(await resolve('inside.test')).toMatchObject({ kind: 'refused' })
  expect(await resolve('nothing.test')).toEqual({ kind: 'unknown' })
})

test('literals are not looked up', async () => {
  const resolve = resolveWith(() => failing('EAI_AGAIN'), guard)
  expect(await resolve('1.1.1.1')).toMatchObject({ kind: 'addresses' })
  expect(await resolve('::1')).toMatchObject({ kind: 'refused' })
})

test('names of this machine are not looked up and reach only allowed ranges', async () => {
  const names = ['localhost', 'localhost.', 'x.localhost', 'A.B.LOCALHOST.', 'ip6-loopback']
  const asked: string[] = []
  const resolver = async (name: string) => (asked.push(name), ['1.1.1.1'])
  const [closed, open] = [resolveWith(resolver, guard), resolveWith(resolver, addressGuard(['127.0.0.0/8']))]
  for (const name of names) {
    expect([name, await closed(name)]).toMatchObject([name, { kind: 'refused' }])
    expect([name, await open(name)]).toEqual([name, { kind: 'addresses', addresses: ['127.0.0.1'] }])
  }
  expect(asked).toEqual([])
  expect(await closed('localhost.example')).toMatchObject({ kind: 'addresses' })
})

describe('name servers that do not answer', () => {
  test("unanswered for every name is a local failure; for one name only, the owner's", async () => {
    let isDown = false
    const resolve = resolveWith((name) => {
      return isDown || name === 'broken.test' ? failing('EAI_AGAIN') : Promise.resolve(['1.1.1.1'])
    }, guard)
    expect(await resolve('broken.test')).toEqual({ kind: 'resolver_down' }) // nothing is known to compare with
    await resolve('good.test')
    expect(await resolve('broken.test')).toEqual({ kind: 'unanswered' })
    isDown = true
    expect(await resolve('broken.test')).toEqual({ kind: 'resolver_down' })
    expect(await resolve('good.test')).toEqual({ kind: 'resolver_down' })
  })

  test('an unknown name is an answer', async () => {
    expect(await resolveWith(() => failing('ENOTFOUND'), guard)('none.test')).toEqual({ kind: 'unknown' })
  })

  test('a name server that hangs is abandoned after 3 s', async () => {
    const startedMs = performance.now()
    const since = () => performance.now() - startedMs
    const resolution = resolveWith(() => new Promise(() => {}), guard)('slow.test')
    const [givenUpMs, sleptMs] = await Promise.all([resolution.then(since), Bun.sleep(3_000).then(since)])
    expect(await resolution).toEqual({ kind: 'resolver_down' })
    expect(givenUpMs).toBeWithin(2_900, sleptMs + 500)
  })
})
