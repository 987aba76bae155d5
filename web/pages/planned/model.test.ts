/** Every page without its own code has its honest words, and counts only what belongs to it. */
import { expect, test } from 'bun:test'
import { routes } from '../../routes.ts'
import { keptTypes, plannedPages } from './model.ts'

test('each page that is not built has its words, and no page that is built has them', () => {
  const built = ['/logs', '/settings', '/detect', '/auth', '/authz', '/analytics']
  const waiting = routes
    .filter((route) => !built.includes(route.path))
    .map(({ path, name }) => ({ path, name }))
  expect(plannedPages.map(({ path, name }) => ({ path, name }))).toEqual(waiting)
})

test('keptTypes counts a prefix by whole words, most first', () => {
  const byType = { 'auth.a': 2, 'authz.evaluated': 9, auth: 1, 'auth.b': 5 }
  expect(keptTypes(byType, 'auth')).toEqual([
    { type: 'auth.b', count: 5 },
    { type: 'auth.a', count: 2 },
    { type: 'auth', count: 1 },
  ])
  expect(keptTypes(byType, null)).toHaveLength(4)
})
