/** Excerpts of responses are safe to store and show. */
import { expect, test } from 'bun:test'
import { excerptText } from './http.ts'

test('excerpts contain no control characters and no inflated bodies', () => {
  expect(excerptText(Buffer.from('ok\n\u0000\u001b[31m'), null)).toBe('ok\n\ufffd\ufffd[31m')
  expect(excerptText(new Uint8Array([0xff, 0xfe, 65]), 'identity')).toBe('\ufffd\ufffdA')
  expect(excerptText(Bun.gzipSync(Buffer.alloc(1_000_000)), 'gzip')).toMatch(
    /^\(\d+ bytes in content-encoding, not shown\)$/,
  )
  expect(excerptText(new Uint8Array(), 'gzip')).toBe('')
  expect(Buffer.byteLength(excerptText(new Uint8Array(16_384).fill(0xff), null))).toBeLessThanOrEqual(16_384)
})
