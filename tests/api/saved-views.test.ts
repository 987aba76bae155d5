/** Saved views over HTTP: valid names and searches, the limit, and the audit entry of each change. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { limits } from '../../server/limits.ts'
import { person, type Person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let analyst: Person
let viewer: Person
beforeAll(async () => {
  server = await testServer()
  analyst = await person(server, server.org, 'analyst')
  viewer = await person(server, server.org, 'viewer')
})
afterAll(() => server[Symbol.asyncDispose]())

interface View {
  id: string
  name: string
  search: string
  createdBy: string
  createdAt: string
}

async function request(member: Person, method: string, path: string, body?: unknown) {
  const answer = await member.call(path, { method, ...(body === undefined ? {} : { body }) })
  return {
    status: answer.status,
    ...((await answer.json()) as { view: View; error: string; issues: object[] }),
  }
}
const list = async (member = viewer) =>
  ((await (await member.call('/api/views')).json()) as { views: View[] }).views

test('an analyst creates, renames, changes and deletes; a viewer reads; each change has an audit entry', async () => {
  const creation = await request(analyst, 'POST', '/api/views', {
    name: ' Denied <b> ',
    search: '?decision=deny',
  })
  expect(creation).toMatchObject({ status: 201, view: { name: 'Denied <b>', search: '?decision=deny' } })
  const { id, createdBy, createdAt } = creation.view
  expect([createdBy, createdAt.endsWith('Z')]).toEqual([analyst.id, true])
  expect(await list()).toEqual([creation.view])
  const path = `/api/views/${id}`
  expect(await request(viewer, 'PATCH', path, { name: 'mine' })).toMatchObject({ status: 403 })
  expect(await request(viewer, 'DELETE', path, {})).toMatchObject({ status: 403 })
  expect(await request(viewer, 'POST', '/api/views', { name: 'x', search: '' })).toMatchObject({
    status: 403,
  })
  expect(await request(analyst, 'POST', '/api/views', { name: 'Denied <b>', search: '' })).toMatchObject({
    status: 409,
    error: 'conflict',
  })
  expect(await request(analyst, 'PATCH', path, { name: 'Denied' })).toMatchObject({ status: 200 })
  expect(await request(analyst, 'PATCH', path, { search: '' })).toMatchObject({
    view: { name: 'Denied', search: '' },
  })
  expect(await request(analyst, 'DELETE', path, {})).toMatchObject({ status: 200 })
  expect(await request(analyst, 'DELETE', path, {})).toMatchObject({ status: 404 })
  const { entries } = await server.store.audit.list({ orgId: server.org.id, limit: 50, beforeSeq: null })
  const viewEntries = entries.filter(({ target }) => target === id)
  expect(viewEntries.map(({ action }) => action).toSorted()).toEqual([
    'view.changed',
    'view.created',
    'view.deleted',
    'view.renamed',
  ])
  expect(viewEntries.find(({ action }) => action === 'view.renamed')?.metadata).toMatchObject({
    before: { name: 'Denied <b>' },
    after: { name: 'Denied' },
  })
})

test.each([
  [{ name: '', search: '' }, 'name'],
  [{ name: '  ', search: '' }, 'name'],
  [{ name: 'ü'.repeat(limits.viewNameCharsMax + 1), search: '' }, 'name'],
  [{ name: 'a\nb', search: '' }, 'name'],
  [{ name: 'a', search: 'type=x' }, 'search'],
  [{ name: 'a', search: '?type=x y' }, 'search'],
  [{ name: 'a', search: '//evil.example' }, 'search'],
  [{ name: 'a', search: `?${'x'.repeat(limits.viewSearchCharsMax)}` }, 'search'],
  [{ name: 'a' }, 'search'],
  [{ name: 'a', search: '', orgId: 'x' }, 'orgId'],
])('%j is refused at %s', async (body, path) => {
  expect(await request(analyst, 'POST', '/api/views', body)).toMatchObject({
    status: 400,
    issues: [{ path }],
  })
})

test('an organization has at most a hundred; one more is an error', async () => {
  for (let n = 0; n < limits.viewsMax; n++)
    await request(analyst, 'POST', '/api/views', { name: `view ${n}`, search: '' })
  expect(await list()).toHaveLength(limits.viewsMax)
  const beyond = await request(analyst, 'POST', '/api/views', { name: 'one more', search: '' })
  expect(beyond).toMatchObject({ status: 409, message: expect.stringContaining('100 saved views') })
  const duplicate = await request(analyst, 'POST', '/api/views', { name: 'view 7', search: '' })
  expect(duplicate).toMatchObject({ status: 409, message: expect.stringContaining('"view 7"') })
})
