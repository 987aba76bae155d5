/** The methods of a path, for 405 responses. */
import { expect, test } from 'bun:test'
import { methodFinder } from '../../server/app.ts'

test('a fixed path does not accept the methods of ids', () => {
  const find = methodFinder([
    { method: 'POST', path: '/v1/webhooks/test' },
    { method: 'GET', path: '/v1/webhooks/:id' },
  ])
  expect([find('/v1/webhooks/test'), find('/v1/webhooks/wh_1')]).toEqual([['POST'], ['GET', 'HEAD']])
})

test('finds the methods of a path with parameters, and none for an unknown path', () => {
  const find = methodFinder([
    { method: 'GET', path: '/v1/traces' },
    { method: 'GET', path: '/v1/traces/:id' },
    { method: 'POST', path: '/v1/sdk/events' },
    { method: 'POST', path: '/api/keys' },
    { method: 'GET', path: '/api/keys' },
  ])
  expect(find('/v1/traces')).toEqual(['GET', 'HEAD'])
  expect(find('/v1/traces/a%2Fb')).toEqual(['GET', 'HEAD'])
  expect(find('/api/keys')).toEqual(['GET', 'HEAD', 'POST'])
  expect(find('/v1/sdk/events')).toEqual(['POST'])
  expect(find('/v1/traces/')).toEqual(['GET', 'HEAD'])
  expect(['/v1/traces/a/b', '/v1', '/', '/v1/tracesX'].flatMap(find)).toEqual([])
})
