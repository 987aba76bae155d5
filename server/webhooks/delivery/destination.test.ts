/** Which URLs are targets at all: http and https plainly written, syslog receivers, files below the sink folder. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { laneOf, readTarget, RefusedUrl, type HttpTarget } from './destination.ts'

const sinks = '/var/sinks'

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
  expect(() => readTarget(url, sinks)).toThrow(RefusedUrl)
})

test('http and https, names and addresses', () => {
  const target = readTarget('https://Hooks.Example.com:8443/a/b?c=%20d', sinks) as HttpTarget
  expect(target).toMatchObject({ kind: 'http', host: 'hooks.example.com' })
  expect(laneOf('org_1', target)).toBe('org_1 https://hooks.example.com:8443')
  expect(readTarget('http://[2606:4700::1111]/', null)).toMatchObject({ host: '2606:4700::1111' })
})

describe('syslog', () => {
  test('ports have their defaults and hosts one form', () => {
    expect(readTarget('syslog+udp://siem.example', null)).toEqual({
      kind: 'syslog',
      transport: 'udp',
      host: 'siem.example',
      port: 514,
    })
    expect(readTarget('syslog+tcp://0x7f.1', null)).toMatchObject({
      transport: 'tcp',
      host: '127.0.0.1',
      port: 601,
    })
    expect(readTarget('syslog://[::1]:5140', null)).toMatchObject({
      transport: 'udp',
      host: '::1',
      port: 5140,
    })
  })
})

describe('files', () => {
  test('a name, or a path below the folder', () => {
    for (const url of ['file:a/b.ndjson', 'file:///var/sinks/a/b.ndjson']) {
      expect(readTarget(url, sinks)).toEqual({ kind: 'file', path: 'a/b.ndjson' })
    }
    expect(() => readTarget('file:a.ndjson', null)).toThrow(/--sink-dir/)
  })

  test('whatever the text, a file target stays below the folder', () => {
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
          target = readTarget(`file:${pieces.join('')}`, sinks)
        } catch (error) {
          return expect(error).toBeInstanceOf(RefusedUrl)
        }
        expect(target).toMatchObject({
          kind: 'file',
          path: expect.stringMatching(/^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/),
        })
      }),
      { numRuns: 2_000 },
    )
  })
})
