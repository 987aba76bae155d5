/** Which URLs are accepted: http and https, syslog receivers, files in the sink folder. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { addressGuard, resolveWith, systemResolver } from './addresses.ts'
import { laneOf, parseDestination } from './destination.ts'
import { RefusedUrl } from './sink.ts'
import { runs } from '../../../tests/support/runs.ts'

const sinks = '/var/sinks'
const resolve = resolveWith(systemResolver, addressGuard([]))
const targetOf = (url: string, sinkDir: string | null = null) =>
  parseDestination(url, { resolve, sinkDir }).target

test.each([
  'ftp://example.com/',
  'javascript:alert(1)',
  'data:text/plain,hi',
  'gopher://example.com/',
  'ws://example.com/',
  'blob:http://example.com/x',
  'unix:/run/x.sock',
  '//example.com/',
  'example.com',
  '',
  'http://',
  'http://[::1',
  'http://user@example.com/',
  'http://user:word@example.com/',
  'http://:word@example.com/',
  'http://example.com/#part',
  'http://example.com/#',
  `http://example.com/${'x'.repeat(2_048)}`,
  'http://exa mple.com/',
  'http://example.com:99999/',
  'http://example.com:0/',
  'https://example.com:000/',
  'http://example.com/a\r\nb',
  'http://exam\tple.com/',
  '\nhttp://example.com/',
  'http://example.com/\u0085',
  'syslog+udp://siem.example\n',
  'file:a\n.ndjson',
  'file:///etc/passwd',
  'file:///var/sinks/../log/x.ndjson',
  'file:///var/sinks',
  'file:///var/sinks2/x.ndjson',
  'file:.hidden.ndjson',
  'file:a/.git/x.ndjson',
  'file:x.txt',
  'file:a%2fb.ndjson',
  'file://host/var/sinks/x.ndjson',
  'file:a/b/c/d/e.ndjson',
  'syslog+udp://',
  'syslog+udp://h:0',
  'syslog+tcp://h:601/path',
  'syslog+tls://h',
])('%s is refused', (url) => {
  expect(() => targetOf(url, sinks)).toThrow(RefusedUrl)
})

test('http and https, names and addresses', () => {
  const url = 'https://Hooks.Example.com:8443/a/b?c=%20d'
  expect(targetOf(url)).toMatchObject({ host: 'hooks.example.com' })
  expect(laneOf('org_1', url)).toBe('org_1 https://hooks.example.com:8443')
  expect(targetOf('http://[2606:4700::1111]/')).toMatchObject({ host: '2606:4700::1111' })
})

describe('syslog', () => {
  test('default ports, normalized hosts', () => {
    expect(targetOf('syslog+udp://siem.example')).toEqual({
      transport: 'udp',
      host: 'siem.example',
      port: 514,
    })
    expect(targetOf('syslog+tcp://0x7f.1')).toMatchObject({
      transport: 'tcp',
      host: '127.0.0.1',
      port: 601,
    })
    expect(targetOf('syslog://[::1]:5140')).toMatchObject({
      transport: 'udp',
      host: '::1',
      port: 5140,
    })
  })
})

describe('files', () => {
  test('a name or a path in the folder', () => {
    for (const url of ['file:a/b.ndjson', 'file:///var/sinks/a/b.ndjson']) {
      expect(targetOf(url, sinks)).toEqual({ sinkDir: sinks, path: 'a/b.ndjson' })
    }
    expect(() => targetOf('file:a.ndjson')).toThrow(/--sink-dir/)
  })

  test('no path leaves the folder', () => {
    const piece = fc.constantFrom(
      '..',
      '.',
      '/',
      '\\',
      'a',
      'b.ndjson',
      '%2e',
      '%2f',
      ':',
      'file:',
      '///',
      ' ',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        let target
        try {
          target = targetOf(`file:${pieces.join('')}`, sinks)
        } catch (error) {
          return expect(error).toBeInstanceOf(RefusedUrl)
        }
        expect(target).toMatchObject({
          path: expect.stringMatching(/^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/),
        })
      }),
      { numRuns: runs(2_000) },
    )
  })
})
