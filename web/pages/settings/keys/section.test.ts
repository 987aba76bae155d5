/** The state of a key, and usable keys first. */
import { expect, test } from 'bun:test'
import type { Key } from '../../../api/api.ts'
import { inOrder, keyState } from './section.tsx'

const nowMs = Date.parse('2026-06-23T12:00:00Z')

function key(id: string, fields: Partial<Key> = {}): Key {
  return {
    id,
    kind: 'ingest',
    label: id,
    prefix: 'agtx_ik_abcdefgh',
    createdAt: '2026-06-01T00:00:00.000Z',
    lastUsedAt: null,
    lastUsedAddress: null,
    expiresAt: null,
    revokedAt: null,
    exposedAt: null,
    siteIds: [],
    scopes: [],
    behindProxy: false,
    ...fields,
  }
}

const exposedAt = '2026-06-02T00:00:00.000Z'

test('states', () => {
  expect(keyState(key('a'), nowMs)).toBe('active')
  expect(keyState(key('a', { exposedAt }), nowMs)).toBe('exposed')
  expect(keyState(key('a', { exposedAt, expiresAt: '2026-06-23T12:00:00.000Z' }), nowMs)).toBe('expired')
  expect(keyState(key('a', { expiresAt: '2026-06-23T12:00:00.001Z' }), nowMs)).toBe('active')
  expect(keyState(key('a', { exposedAt, revokedAt: exposedAt }), nowMs)).toBe('revoked')
})

test('order', () => {
  const keys = [
    key('revoked', { revokedAt: exposedAt, createdAt: '2026-06-20T00:00:00.000Z' }),
    key('old'),
    key('new', { createdAt: '2026-06-10T00:00:00.000Z' }),
  ]
  expect(inOrder(keys, nowMs).map((ingestKey) => ingestKey.id)).toEqual(['new', 'old', 'revoked'])
})
