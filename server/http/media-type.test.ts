/** Content negotiation: the response type for each Accept header. */
import { expect, test } from 'bun:test'
import { AppError } from '../errors.ts'
import { acceptedType } from './media-type.ts'

const offered = ['application/json', 'application/x-ndjson', 'text/csv'] as const

test.each([
  [null, 'application/json'],
  ['', 'application/json'],
  ['*/*', 'application/json'],
  ['text/html,application/xhtml+xml,*/*;q=0.8', 'application/json'],
  ['application/x-ndjson', 'application/x-ndjson'],
  ['Text/CSV', 'text/csv'],
  ['text/*', 'text/csv'],
  ['application/json;q=0.5, text/csv', 'text/csv'],
  ['text/csv;q=0.5, application/x-ndjson;q=0.6', 'application/x-ndjson'],
  ['text/csv, application/x-ndjson', 'application/x-ndjson'],
  ['*/*, application/json;q=0', 'application/x-ndjson'],
] as const)('%p gets %p', (header, type) => {
  expect(acceptedType(header, offered)).toBe(type)
})

test.each(['text/html', 'application/json;q=0', 'application/json;q=x', ';', ','])('%p is 406', (header) => {
  let thrown: unknown = null
  try {
    acceptedType(header, offered)
  } catch (error) {
    thrown = error
  }
  expect(thrown).toBeInstanceOf(AppError)
  expect((thrown as AppError).status).toBe(406)
})
