/** Tests of how standard output of the executable is read (contract §10). */
import { expect, test } from 'bun:test'
import { parseIngestListening, parseListening, parseSetupLink } from './binary.ts'

const listening = 'sightglass 0.1.0 listening on http://127.0.0.1:7400'
const ingest = 'ingest listening on http://127.0.0.1:7401/'

test('the listening line gives version and address', () => {
  expect(parseListening(listening)).toEqual({ version: '0.1.0', url: 'http://127.0.0.1:7400' })
  expect(parseListening(ingest)).toBeNull()
  expect(parseListening('{"message":"listening on http://127.0.0.1:1"}')).toBeNull()
})

test('the ingest line gives its address without a trailing slash', () => {
  expect(parseIngestListening(ingest)).toBe('http://127.0.0.1:7401')
  expect(parseIngestListening(listening)).toBeNull()
})

test('the setup link is the address that is not a listener', () => {
  expect(parseSetupLink(listening)).toBeNull()
  expect(parseSetupLink(ingest)).toBeNull()
  expect(parseSetupLink('set up the first owner: http://127.0.0.1:7400/setup#abc')).toBe(
    'http://127.0.0.1:7400/setup#abc',
  )
})
