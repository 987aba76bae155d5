/** The signature base: every published example of RFC 9421, its rules, and agreement with another implementation. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { httpbis } from 'http-message-signatures'
import {
  rfcRequest,
  rfcVectors,
  type SignatureVector,
  testKeys,
} from '../../tests/support/signature-vectors.ts'
import { ComponentError, type HttpMessage, signatureBase, targetOf } from './signature-base.ts'
import { FieldError, type InnerList, isInnerList, parseDictionary } from './structured-fields.ts'

function coveredOf(input: string): InnerList {
  const member = parseDictionary(`sig=${input}`).get('sig')
  if (member === undefined || !isInnerList(member)) throw new Error(`not a list: ${input}`)
  return member
}

/** The lines of the base above the last one. */
const linesOf = (message: HttpMessage, ...components: string[]): string[] =>
  signatureBase(message, coveredOf(`(${components.join(' ')})`))
    .split('\n')
    .slice(0, -1)

const algorithms = {
  'test-key-rsa-pss': {
    import: { name: 'RSA-PSS', hash: 'SHA-512' },
    verify: { name: 'RSA-PSS', saltLength: 64 },
  },
  'test-key-ecc-p256': {
    import: { name: 'ECDSA', namedCurve: 'P-256' },
    verify: { name: 'ECDSA', hash: 'SHA-256' },
  },
  'test-key-ed25519': { import: { name: 'Ed25519' }, verify: { name: 'Ed25519' } },
  'test-shared-secret': { import: { name: 'HMAC', hash: 'SHA-256' }, verify: { name: 'HMAC' } },
}

async function isSigned({ key, signature }: SignatureVector, base: string): Promise<boolean> {
  const algorithm = algorithms[key]
  const imported = await crypto.subtle.importKey('jwk', testKeys[key], algorithm.import, false, ['verify'])
  const bytes = Buffer.from(signature, 'base64')
  return crypto.subtle.verify(algorithm.verify, imported, bytes, new TextEncoder().encode(base))
}

for (const vector of rfcVectors) {
  test(`RFC 9421 ${vector.name}: the published base and signature`, async () => {
    const base = signatureBase(vector.message, coveredOf(vector.input))
    expect(base).toBe([...vector.lines, `"@signature-params": ${vector.input}`].join('\n'))
    expect(await isSigned(vector, base)).toBe(true)
    expect(await isSigned(vector, `${base} `)).toBe(false)
  })
}

test('RFC 9421 B.4: what a proxy may change, and what it may not', async () => {
  const input = '("@method" "@path" "@authority" "accept");created=1618884473;keyid="test-key-ed25519"'
  const signature = 'ZT1kooQsEHpZ0I1IjCqtQppOmIqlJPeo7DHR3SoMn0s5JZ1eRGS0A+vyYP9t/LXlh5QMFFQ6cpLt2m0pmj3NDA=='
  const vector: SignatureVector = {
    name: 'B.4',
    key: 'test-key-ed25519',
    message: rfcRequest,
    lines: [],
    input,
    signature,
  }
  const verified = (url: string, method: string, ...accept: string[]): Promise<boolean> => {
    const headers = accept.map((value): [string, string] => ['Accept', value])
    return isSigned(vector, signatureBase({ method, url, headers }, coveredOf(input)))
  }
  const url = 'https://example.org/demo?name1=Value1&Name2=value2'
  expect(await verified(url, 'GET', 'application/json', '*/*')).toBe(true)
  expect(await verified(`${url}&param=added`, 'GET', 'application/json, */*')).toBe(true)
  expect(await verified(url, 'GET', '*/*', 'application/json')).toBe(false)
  expect(await verified('https://example.com/demo', 'POST', 'application/json', '*/*')).toBe(false)
})

test('RFC 9421 2.1: values of headers', () => {
  const message: HttpMessage = {
    headers: [
      ['Host', 'www.example.com'],
      ['X-OWS-Header', '   Leading and trailing whitespace.   '],
      ['X-Obs-Fold-Header', 'Obsolete \r\n    line folding.\n\t'],
      ['Cache-Control', 'max-age=60'],
      ['Cache-Control', '   must-revalidate'],
      ['Example-Dict', '  a=1,    b=2;x=1;y=2,   c=(a   b   c), d'],
      ['Example-Header', 'value, with, lots'],
      ['Example-Header', 'of, commas'],
      ['X-Empty-Header', ''],
    ],
    trailers: { Expires: 'Wed, 9 Nov 2022 07:28:00 GMT' },
  }
  expect(linesOf(message, '"host"', '"x-ows-header"', '"x-obs-fold-header"')).toEqual([
    '"host": www.example.com',
    '"x-ows-header": Leading and trailing whitespace.',
    '"x-obs-fold-header": Obsolete line folding.',
  ])
  expect(linesOf(message, '"cache-control"', '"x-empty-header"', '"example-dict";sf')).toEqual([
    '"cache-control": max-age=60, must-revalidate',
    '"x-empty-header": ',
    '"example-dict";sf: a=1, b=2;x=1;y=2, c=(a b c), d',
  ])
  expect(linesOf(message, ...['a', 'd', 'b', 'c'].map((key) => `"example-dict";key="${key}"`))).toEqual([
    '"example-dict";key="a": 1',
    '"example-dict";key="d": ?1',
    '"example-dict";key="b": 2;x=1;y=2',
    '"example-dict";key="c": (a b c)',
  ])
  expect(linesOf(message, '"example-header";bs', '"expires";tr')).toEqual([
    '"example-header";bs: :dmFsdWUsIHdpdGgsIGxvdHM=:, :b2YsIGNvbW1hcw==:',
    '"expires";tr: Wed, 9 Nov 2022 07:28:00 GMT',
  ])
})

test('RFC 9421 2.2: components that are derived from a request', () => {
  const createMessage = (url: string, overrides: object = {}): HttpMessage => ({
    method: 'GET',
    url,
    headers: {},
    ...overrides,
  })
  const joinLines = (message: HttpMessage, component: string): string => linesOf(message, component).join()
  const long = createMessage('https://www.example.com/path?param=value&foo=bar&baz=bat%2Dman')
  expect(joinLines(long, '"@target-uri"')).toBe(`"@target-uri": ${long.url}`)
  expect(joinLines(long, '"@query"')).toBe('"@query": ?param=value&foo=bar&baz=bat%2Dman')
  expect(joinLines(long, '"@request-target"')).toBe(
    '"@request-target": /path?param=value&foo=bar&baz=bat%2Dman',
  )
  expect(joinLines(createMessage('http://h/', { requestTarget: '*' }), '"@request-target"')).toBe(
    '"@request-target": *',
  )
  expect(joinLines(createMessage('HTTP://WWW.Example.com:80?queryString#part'), '"@authority"')).toBe(
    '"@authority": www.example.com',
  )
  expect(joinLines(createMessage('HTTPS://h:8443'), '"@authority"')).toBe('"@authority": h:8443')
  expect(joinLines(createMessage('https://[2001:DB8::1]:443/'), '"@authority"')).toBe(
    '"@authority": [2001:db8::1]',
  )
  expect(joinLines(createMessage('HTTP://h?queryString#part'), '"@scheme"')).toBe('"@scheme": http')
  expect(joinLines(createMessage('http://h?queryString#part'), '"@path"')).toBe('"@path": /')
  expect(joinLines(createMessage('http://h?queryString#part'), '"@query"')).toBe('"@query": ?queryString')
  expect(joinLines(createMessage('http://h/a/../b%2f'), '"@path"')).toBe('"@path": /a/../b%2f') // what was signed, unchanged
  expect(joinLines(createMessage('http://h/'), '"@query"')).toBe('"@query": ?')
  const form = createMessage(
    'https://h/parameters?var=this%20is%20a%20big%0Amultiline%20value&bar=with+plus+whitespace&fa%C3%A7ade%22%3A%20=something&qux=',
  )
  expect(joinLines(form, '"@query-param";name="var"')).toBe(
    '"@query-param";name="var": this%20is%20a%20big%0Amultiline%20value',
  )
  expect(joinLines(form, '"@query-param";name="bar"')).toBe(
    '"@query-param";name="bar": with%20plus%20whitespace',
  )
  expect(joinLines(form, '"@query-param";name="fa%C3%A7ade%22%3A%20"')).toBe(
    '"@query-param";name="fa%C3%A7ade%22%3A%20": something',
  )
  expect(joinLines(form, '"@query-param";name="qux"')).toBe('"@query-param";name="qux": ')
})

test('a component that is missing, ambiguous or unknown is refused', () => {
  const request: HttpMessage = {
    method: 'GET',
    url: 'https://h/?a=1&a=2',
    headers: [
      ['Multi', 'a\nb'],
      ['Wide', 'é'],
      ['Wider', '→'],
      ['Dict', 'a=1'],
    ],
  }
  const refused = [
    '"missing"',
    '"Host"',
    '"@unknown"',
    '"@status"',
    '"@signature-params"',
    '"multi"',
    '"wide"',
    'token',
    '"@query-param"',
    '"@query-param";name="a"',
    '"@query-param";name="b"',
    '"@query-param";name=a',
    '"dict";key="b"',
    '"dict";key',
    '"dict";sf',
    '"dict";bs;key="a"',
    '"dict";tr',
    '"dict";req',
    '"dict";x',
    '"@path";sf',
    '"dict";bs=?0',
    '"wider";bs',
    '"@authority" "@authority"',
    '""',
    '"dict";key="a";sf "dict";sf;key="a"',
    Array.from({ length: 33 }, (_, index) => `"x${index}"`).join(' '),
  ]
  for (const component of refused) {
    let error: unknown
    try {
      linesOf(request, component)
    } catch (thrown) {
      error = thrown
    }
    expect(error, component).toBeInstanceOf(ComponentError)
  }
  expect(() => linesOf({ ...request, headers: { dict: 'A' } }, '"dict";key="a"')).toThrow(FieldError)
  expect(linesOf(request, '"wide";bs')).toEqual(['"wide";bs: :6Q==:'])
  expect(linesOf(request, '"dict";sf;key="a"')).toEqual(['"dict";sf;key="a": 1'])
  for (const url of ['/path', 'https://', 'https://user@h/', 'https://h:x/', 'https://h\n/', ''])
    expect(() => targetOf({ url }), url).toThrow(ComponentError)
  const response: HttpMessage = { status: 200, headers: {}, request }
  expect(() => linesOf(response, '"@method"')).toThrow(ComponentError)
  expect(() => linesOf({ ...response, status: 2000 }, '"@status"')).toThrow(ComponentError)
  const long = { a: `b="${'x'.repeat(70_000)}"`, spaces: `x${' '.repeat(1_000_000)}x` } // a quadratic trim would hang
  for (const component of ['"a"', '"a";sf', '"a";key="b"', '"a";bs', '"spaces"'])
    expect(() => linesOf({ headers: long }, component), component).toThrow(ComponentError)
})

test('pairs, objects, arrays and Headers have the same values', () => {
  const forms = [
    [
      ['X-A', '1'],
      ['x-a', '2'],
    ] as [string, string][],
    { 'X-A': '1', 'x-A': '2' },
    { 'x-a': ['1', '2'] },
    new Headers([
      ['x-a', '1'],
      ['X-A', '2'],
    ]),
  ]
  for (const headers of forms) expect(linesOf({ headers }, '"x-a"')).toEqual(['"x-a": 1, 2'])
})

test('random requests have the same base as in http-message-signatures', () => {
  const word = fc.stringMatching(/^[A-Za-z0-9_-]{1,8}$/)
  const value = fc.stringMatching(/^[\x20-\x7e]{0,6}$/).filter((text) => !/[!'()~]/.test(text)) // not form-encoded there
  const request = fc.record({
    method: fc.constantFrom('GET', 'POST', 'PUT'),
    path: fc.array(word, { maxLength: 3 }),
    query: fc.uniqueArray(fc.tuple(word, value), { maxLength: 3, selector: ([name]) => name }),
    port: fc.constantFrom('', ':443', ':8443'),
    value: fc.stringMatching(/^[\x21-\x7e]([\x20-\x7e]{0,8}[\x21-\x7e])?$/),
  })
  fc.assert(
    fc.property(request, ({ method, path, query, port, value }) => {
      const search = query.length === 0 ? '' : `?${new URLSearchParams(query)}`
      const url = `https://Shop.Example${port}/${path.join('/')}${search}`
      const message = { method, url, headers: { 'x-value': value, 'x-lines': [value, 'b'] } }
      const components = [
        '@method',
        '@target-uri',
        '@authority',
        '@scheme',
        '@path',
        '@query',
        'x-value',
        'x-lines',
      ]
      const names = [
        ...components.map((name) => JSON.stringify(name)),
        ...query.map(([name]) => `"@query-param";name="${name}"`),
      ]
      const referenceBase = httpbis.createSignatureBase({ fields: names }, message as never)
      expect(linesOf(message, ...names)).toEqual(
        referenceBase.map(([name, values]) => `${name}: ${values.join(', ')}`),
      )
    }),
    { numRuns: 300 },
  )
})
