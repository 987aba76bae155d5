/** An audit export's error names the field once and says what is wrong with it. */
import { expect, test } from 'bun:test'
import { exportOfBody } from '../../server/audit/routes.ts'
import { AppError } from '../../server/errors.ts'

function refusal(body: { [member: string]: unknown }): string {
  try {
    exportOfBody(body)
  } catch (error) {
    if (error instanceof AppError) return error.message
    throw error
  }
  return 'taken'
}

test('an invalid time names its field once', () => {
  expect(refusal({ since: 'yesterday' })).toMatch(/^since must be an RFC 3339 time such as /)
  expect(refusal({ until: '2026-13-01' })).toMatch(/^until must be an RFC 3339 time such as /)
  expect(refusal({ since: '2026-06-23' })).toBe('taken')
})

test('an unknown field is named', () => {
  expect(refusal({ limit: 5 })).toMatch(/^limit is not a known field\. Known fields: format, since, /)
})
