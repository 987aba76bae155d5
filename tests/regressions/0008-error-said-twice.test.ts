/** An error whose only issue repeats its message, such as a password that is too short, is shown once. */
import { expect, test } from 'bun:test'
import { password, person } from '../support/people.ts'
import { testServer } from '../support/server.ts'
import { furtherIssues } from '../../web/components/problem.tsx'

interface Refusal {
  message: string
  issues: { message: string }[]
}

test('the error of a rejected password is shown once', async () => {
  await using server = await testServer()
  const ann = await person(server, server.org, 'viewer')
  const body = { current: password, password: 'short' }
  const refused = (await (await ann.post('/api/account/password', body)).json()) as Refusal
  expect(refused.message).toContain('at least 8 characters')
  expect(furtherIssues(refused)).toBe('')
})

test('issues that the message does not repeat are shown, once', () => {
  const issues = ['email is missing', 'password is missing', 'password is missing'].map((message) => ({
    message,
  }))
  expect(furtherIssues({ message: 'email is missing', issues })).toBe('password is missing')
})
