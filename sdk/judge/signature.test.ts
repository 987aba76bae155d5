/** Web Bot Auth: the drafts' published requests, and each rule with a request that breaks only this one. */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { run } from '../../tests/support/process.ts'
import {
  createSigner,
  signedAtSeconds,
  type SignedHeaders,
  type SignOptions,
} from '../../tests/support/sign-request.ts'
import { botVectors, chatGptRequest, testKeyIds, testKeys } from '../../tests/support/signature-vectors.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { type SignatureOptions, type SignedRequest, verifySignature } from './signature.ts'
import { createKeyring, createNonceMemory, originOf } from './signature-keys.ts'

const origin = 'https://agent.example'
const signer = createSigner()
const keyring = await createKeyring([{ operator: 'Example', url: `${origin}/keys`, keys: [signer.jwk] }])
const nowMs = () => (signedAtSeconds + 10) * 1_000
const options: SignatureOptions = { keyring, nowMs }

/** `valid`, `none` or the code of the fault. */
async function outcome(request: SignedRequest, overrides: Partial<SignatureOptions> = {}): Promise<string> {
  const result = await verifySignature(request, { ...options, ...overrides })
  if (result.state !== 'invalid') return result.state
  expect(result.reason.text).toMatch(/^[A-Z][ -~]{1,299}$/)
  return result.reason.code
}

const signedAs = (signing: SignOptions, overrides?: Partial<SignatureOptions>): Promise<string> =>
  outcome(signer.sign(signing), overrides)

/** The signed request with another header value, or without the header. */
function changed(request: SignedHeaders, name: string, value: string | null): SignedHeaders {
  const otherHeaders = request.headers.filter(([headerName]) => headerName !== name)
  return { ...request, headers: value === null ? otherHeaders : [...otherHeaders, [name, value]] }
}

test('the published requests are valid at their time, and refused by our stricter rules', async () => {
  const testKeyring = await createKeyring([
    { operator: 'Test', url: 'https://signature-agent.test/', keys: Object.values(testKeys) },
  ])
  expect(testKeyring.skipped).toBe(3) // only Ed25519
  const outcomes: { [name: string]: string } = {}
  for (const { name, label, input, signature, agent } of botVectors) {
    const headers = { 'signature-input': `${label}=${input}`, signature: `${label}=:${signature}:` }
    const request = {
      method: 'GET',
      url: 'https://example.com/path/to/resource',
      headers: agent === null ? headers : { ...headers, 'signature-agent': agent },
    }
    const optionsAt = (seconds: number) => ({
      keyring: testKeyring,
      allowTestKeys: true,
      nowMs: () => seconds * 1_000,
    })
    outcomes[name] = await outcome(request, optionsAt(1_735_689_700))
    if (name.startsWith('E.2.2')) {
      expect(await verifySignature(request, { ...options, ...optionsAt(1_735_689_700) })).toEqual({
        state: 'valid',
        operator: 'Test',
        keyId: testKeyIds.ed25519,
      })
      expect(await outcome(request, { ...optionsAt(1_735_689_700), allowTestKeys: false })).toBe('test_key')
      expect(await outcome(request, optionsAt(1_735_693_200))).toBe('expired')
      expect(
        await outcome({ ...request, url: 'https://example.org/path/to/resource' }, optionsAt(1_735_689_700)),
      ).toBe('wrong_signature')
    }
  }
  expect(outcomes).toEqual({
    'without Signature-Agent, for 100 years': 'valid_too_long',
    'E.2.1, a dictionary, for 100 years': 'valid_too_long',
    'E.2.2, a string, for an hour': 'valid',
    'RSA without Signature-Agent': 'valid_too_long',
    'E.1.1, RSA and a dictionary': 'valid_too_long',
    'E.1.2, RSA and a string': 'wrong_algorithm',
  })
})

test('a real request of ChatGPT is valid for its host and path, until it expires', async () => {
  const { key, keyId, request, atMs } = chatGptRequest
  const directory = { operator: 'OpenAI', url: 'https://chatgpt.com', keys: [key] }
  const directoryOptions = {
    keyring: await createKeyring([directory]),
    hosts: ['simonwillison.net'],
    nowMs: () => atMs,
  }
  expect(await verifySignature(request, directoryOptions)).toEqual({
    state: 'valid',
    operator: 'OpenAI',
    keyId,
  })
  const otherUrl = 'https://simonwillison.net/test-url-context/'
  expect(await outcome({ ...request, url: otherUrl }, directoryOptions)).toBe('wrong_signature')
  expect(await outcome(request, { ...directoryOptions, nowMs: () => atMs + 3_600_000 })).toBe('expired')
})

test('a request that its operator signed is valid, with headers of every kind', async () => {
  const request = signer.sign()
  const valid = { state: 'valid', operator: 'Example', keyId: signer.keyId }
  expect(await verifySignature(request, options)).toEqual(valid as never)
  expect(await outcome({ ...request, headers: new Headers(request.headers) })).toBe('valid')
  expect(await outcome({ ...request, headers: Object.fromEntries(request.headers) })).toBe('valid')
  expect(await outcome(new Request(request.url, { headers: request.headers }))).toBe('valid')
  const cover = ['"@method"', '"@target-uri"', '"@path"', '"@query"']
  expect(await signedAs({ method: 'POST', url: 'https://shop.example:8443/a?b=c%20d', cover })).toBe('valid')
})

test('without a signature of an agent there is nothing to judge', async () => {
  const { method, url, headers } = signer.sign()
  expect(await outcome({ method, url, headers: [] })).toBe('none')
  expect(await outcome({ method, url, headers: headers.slice(1) })).toBe('none')
  expect(await outcome({ method, url, headers: { Signature: 'keyId="a",signature="b"' } })).toBe('none')
  expect(await signedAs({ tag: 'other-purpose' })).toBe('none')
  expect(await signedAs({ tag: null })).toBe('none')
})

test('the host must be covered, and be one of the site', async () => {
  expect(await signedAs({ cover: ['"@method"', '"@path"'] })).toBe('host_not_covered')
  expect(await signedAs({ cover: [] })).toBe('host_not_covered')
  expect(await signedAs({ cover: ['"@authority";req'] })).toBe('host_not_covered')
  expect(await outcome({ ...signer.sign(), url: 'https://other.example/products/7' })).toBe('wrong_signature')
  expect(await signedAs({}, { hosts: ['shop.example', 'www.shop.example'] })).toBe('valid')
  expect(await signedAs({}, { hosts: ['www.shop.example'] })).toBe('other_host')
  expect(await signedAs({ url: 'https://shop.example:8443/' }, { hosts: ['shop.example'] })).toBe(
    'other_host',
  )
})

test('a change of a covered component breaks the signature, a change of another one does not', async () => {
  const request = signer.sign({ cover: ['"@authority"', '"@method"', '"@path"'] })
  expect(await outcome({ ...request, method: 'POST' })).toBe('wrong_signature')
  expect(await outcome({ ...request, url: 'https://shop.example/products/8' })).toBe('wrong_signature')
  expect(await outcome({ ...request, url: 'http://SHOP.example:80/products/7?q' })).toBe('valid')
  expect(await signedAs({ cover: ['"@authority"', '"x-missing"'] })).toBe('unsignable')
  expect(await signedAs({ cover: ['"@authority"', '"@authority"'] })).toBe('unsignable')
})

test('it must be valid now, and never for longer than a day', async () => {
  const created = signedAtSeconds
  expect(await signedAs({ created: created + 70 })).toBe('valid') // 60 s ahead of our clock
  expect(await signedAs({ created: created + 71 })).toBe('created_in_future')
  expect(await signedAs({ expires: created + 11 })).toBe('valid')
  expect(await signedAs({ expires: created + 10 })).toBe('expired')
  expect(await signedAs({ expires: created + 86_400 })).toBe('valid')
  expect(await signedAs({ expires: created + 86_401 })).toBe('valid_too_long')
  expect(await signedAs({ created: null })).toBe('no_time')
  expect(await signedAs({ expires: null })).toBe('no_time')
  expect(await signedAs({ created: created + 0.5 })).toBe('no_time')
})

test('only Ed25519 keys of known operators count', async () => {
  const stranger = createSigner()
  expect(await outcome(stranger.sign())).toBe('unknown_key')
  expect(await outcome(stranger.sign({ keyid: signer.keyId }))).toBe('wrong_signature')
  expect(await signedAs({ keyid: null })).toBe('unknown_key')
  expect(await signedAs({ keyid: 'kid-of-a-directory' })).toBe('unknown_key')
  expect(await signedAs({ alg: null })).toBe('valid')
  expect(await signedAs({ alg: 'hmac-sha256' })).toBe('wrong_algorithm')
  expect(await signedAs({ alg: 'ED25519' })).toBe('wrong_algorithm')
  expect(await outcome(createSigner('test-key-ed25519').sign())).toBe('test_key')
  const claimed = await verifySignature(stranger.sign(), options)
  expect(claimed).toMatchObject({ state: 'invalid', keyId: stranger.keyId })
})

test('keys that are private, malformed, not yet valid or expired do not count', async () => {
  const validity = { nbf: signedAtSeconds + 11, exp: signedAtSeconds + 100 }
  const verifyWithKeys = async (keys: { [field: string]: unknown }[]): Promise<string> =>
    outcome(signer.sign(), { keyring: await createKeyring([{ operator: 'Example', keys }]) })
  expect(await verifyWithKeys([{ ...signer.jwk, ...validity }])).toBe('key_not_valid')
  expect(await verifyWithKeys([{ ...signer.jwk, nbf: validity.nbf - 1 }])).toBe('valid')
  expect(
    await verifyWithKeys([{ ...signer.jwk, nbf: (validity.nbf - 1) * 1_000, exp: validity.exp * 1_000 }]),
  ).toBe('valid')
  expect(await verifyWithKeys([{ ...signer.jwk, exp: signedAtSeconds + 10 }])).toBe('key_not_valid')
  expect(await verifyWithKeys([{ ...signer.jwk, d: 'AAAA' }])).toBe('unknown_key')
  const { x } = signer.jwk
  const malformed = [x.slice(1), `${x}A`, `${x.slice(0, -1)}=`, '', 7, `${x.slice(0, -1)}!`]
  const { skipped } = await createKeyring([
    { operator: 'Example', keys: malformed.map((coordinate) => ({ ...signer.jwk, x: coordinate })) },
  ])
  expect(skipped).toBe(malformed.length)
  const hugeDirectory = { operator: 'Example', keys: Array.from({ length: 10_001 }, () => ({})) }
  expect(await createKeyring([hugeDirectory]).catch((error: Error) => error.message)).toBe(
    'there are more than 10000 keys',
  )
})

test('Signature-Agent must be covered in either form, and be where the operator publishes the key', async () => {
  const covering = (agent: string, ...cover: string[]) =>
    signedAs({ agent, cover: ['"@authority"', ...cover] })
  const member = (key: string) => `"signature-agent";key="${key}"`
  expect(await covering(`"${origin}"`, '"signature-agent"')).toBe('valid')
  expect(await covering(`"${origin}"`)).toBe('agent_not_covered')
  expect(await covering(`sig1="${origin}"`, member('sig1'))).toBe('valid')
  expect(await covering(`sig1="${origin}/other";type=jwks_uri`, member('sig1'))).toBe('valid')
  expect(await covering(`sig1="${origin}"`, '"signature-agent"')).toBe('valid')
  expect(await covering(`sig1="${origin}"`)).toBe('agent_not_covered')
  expect(await covering(`sig1="${origin}"`, member('sig2'))).toBe('agent_not_covered')
  expect(await covering(`a="${origin}", b="https://b.example"`, member('a'))).toBe('valid')
  expect(await covering(`a="${origin}", b="https://b.example"`, member('b'))).toBe('wrong_agent')
  expect(await covering(`a="${origin}", b="https://b.example"`, member('a'), member('b'))).toBe(
    'ambiguous_agent',
  )
  expect(await covering(`a="${origin}", b="https://b.example"`, '"signature-agent"')).toBe('ambiguous_agent')
  for (const agent of [
    'https://evil.example',
    'http://agent.example',
    'https://u@agent.example',
    'agent.example',
  ])
    expect(await covering(`"${agent}"`, '"signature-agent"'), agent).toBe('wrong_agent')
  expect(await covering('sig1=1', member('sig1'))).toBe('wrong_agent')
  expect(await covering('https://agent.example', '"signature-agent"')).toBe('malformed')
  const request = signer.sign({ agent: `"${origin}"` })
  expect(await outcome(changed(request, 'Signature-Agent', null))).toBe('unsignable')
  expect(await outcome(changed(request, 'Signature-Agent', `sig1="${origin}"`))).toBe('wrong_signature')
  expect(originOf('https://Agent.Example:443/x')).toBe(origin)
})

test('a key in several directories belongs to the operator that the request names', async () => {
  const directory = (operator: string, url?: string) => ({ operator, url, keys: [signer.jwk] })
  const bothKeyring = await createKeyring([
    directory('A', 'https://a.example'),
    directory('B', 'https://b.example'),
  ])
  const namedRequest = signer.sign({ agent: '"https://b.example"' })
  expect(await verifySignature(namedRequest, { ...options, keyring: bothKeyring })).toMatchObject({
    operator: 'B',
  })
  expect(await signedAs({}, { keyring: bothKeyring })).toBe('ambiguous_key')
  const unnamed = await createKeyring([directory('A')])
  expect(await verifySignature(namedRequest, { ...options, keyring: unnamed })).toMatchObject({
    operator: 'A',
  })
})

test('of several signatures one must be valid', async () => {
  const good = signer.sign({ label: 'good' })
  const bad = createSigner().sign({ label: 'bad' })
  const proxyRequest = createSigner().sign({ label: 'proxy', tag: 'proxy' })
  const joined = (...requests: SignedHeaders[]) => ({
    ...good,
    headers: requests.flatMap(({ headers }) => headers),
  })
  expect(await outcome(joined(bad, proxyRequest, good))).toBe('valid')
  expect(await outcome(joined(proxyRequest, bad))).toBe('unknown_key')
  const five = Array.from({ length: 5 }, (_, index) => signer.sign({ label: `s${index}` }))
  expect(await outcome(joined(...five.slice(1)))).toBe('valid')
  expect(await outcome(joined(...five))).toBe('too_large')
})

test('malformed and oversized headers are refused, and never thrown', async () => {
  const request = signer.sign()
  const input = request.headers[0]![1]
  const signature = request.headers[1]![1]
  for (const [name, value, code] of [
    ['Signature-Input', 'sig1=(', 'malformed'],
    ['Signature-Input', 'é', 'malformed'],
    ['Signature-Input', 'x'.repeat(8_193), 'too_large'],
    ['Signature-Input', input.replace('"@authority"', '@authority'), 'malformed'],
    ['Signature-Input', input.replace('"@authority"', 'authority'), 'unsignable'],
    ['Signature-Input', input.replace('("@authority")', '"@authority"'), 'none'],
    ['Signature-Input', input.replace('sig1', 'sig2'), 'missing_signature'],
    ['Signature', null, 'missing_signature'],
    ['Signature', 'sig1', 'missing_signature'],
    ['Signature', 'sig1="text"', 'missing_signature'],
    ['Signature', 'sig1=:AAAA:', 'wrong_signature'],
    ['Signature', signature.replace(/:$/, ''), 'malformed'],
    ['Signature', `${signature}, a=:${'A'.repeat(8_192)}:`, 'too_large'],
    ['Signature-Agent', `"${'a'.repeat(8_192)}"`, 'too_large'],
  ] as const)
    expect(await outcome(changed(request, name, value)), `${name}: ${value?.slice(0, 40)}`).toBe(code)
  expect(await outcome({ ...request, url: '/products/7' })).toBe('unsignable')
  expect(await outcome({ ...request, url: `https://shop.example/${'a'.repeat(16_384)}` })).toBe('too_large')
})

test('a nonce counts once, as long as its signature is valid', async () => {
  const nonces = createNonceMemory(2)
  const nonceRequest = signer.sign({ nonce: 'n1' })
  expect(await outcome(signer.sign({ nonce: 'n1', cover: ['"@path"'] }), { nonces })).toBe('host_not_covered')
  expect(await outcome(createSigner().sign({ nonce: 'n1', keyid: signer.keyId }), { nonces })).toBe(
    'wrong_signature',
  )
  expect(await outcome(nonceRequest, { nonces })).toBe('valid')
  expect(await outcome(nonceRequest, { nonces })).toBe('replayed')
  expect(await outcome(nonceRequest)).toBe('valid') // only when asked
  expect(await signedAs({}, { nonces })).toBe('no_nonce')
  expect(await signedAs({ nonce: 'n'.repeat(257) }, { nonces })).toBe('no_nonce')
  expect(await signedAs({ nonce: 'n2', expires: signedAtSeconds + 600 }, { nonces })).toBe('valid')
  expect(await signedAs({ nonce: 'n3' }, { nonces })).toBe('nonces_full')
  const later = { nonces, nowMs: () => (signedAtSeconds + 300) * 1_000 }
  expect(await outcome(nonceRequest, later)).toBe('expired')
  expect(await signedAs({ nonce: 'n3', expires: signedAtSeconds + 600 }, later)).toBe('valid')
  expect(await signedAs({ nonce: 'n2', expires: signedAtSeconds + 600 }, later)).toBe('replayed')
})

test('runs on Node.js without anything of Node.js or Bun', async () => {
  using dir = tempDir('signature')
  const entrypoints = [`${import.meta.dir}/signature.ts`, `${import.meta.dir}/signature-keys.ts`]
  const built = await Bun.build({ entrypoints, outdir: dir.path, target: 'browser', splitting: true })
  for (const output of built.outputs)
    expect(await output.text()).not.toMatch(/Bun\.|Buffer|from ?"(node|bun):/)
  const { key, keyId, request, atMs } = chatGptRequest
  const program = `import { verifySignature } from './signature.js'
    import { createKeyring } from './signature-keys.js'
    const keyring = await createKeyring([{ operator: 'OpenAI', keys: [${JSON.stringify(key)}] }])
    const result = await verifySignature(${JSON.stringify(request)}, { keyring, nowMs: () => ${atMs} })
    console.log(JSON.stringify(result))`
  writeFileSync(dir.join('program.mjs'), program)
  writeFileSync(dir.join('package.json'), '{"type":"module"}')
  const node = run(['node', 'program.mjs'], { cwd: dir.path, env: { PATH: process.env['PATH'] ?? '' } })
  expect([await node.exited, node.stderr()]).toEqual([0, ''])
  expect(JSON.parse(node.stdout())).toEqual({ state: 'valid', operator: 'OpenAI', keyId })
})
