/** Setup files: their meaning, and the line and field in every error. */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { UsageError } from '../../errors.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { readSetupFile, readSetupText } from './file.ts'

const hash = 'a'.repeat(64)
const whole = `
[[organizations]]
slug = "acme"
name = "Acme"

[[organizations.sites]]
id = "shop"
restricted = true

[[organizations.keys]]
kind = "ingest"
label = "backend"
hash = "${hash}"
prefix = "agtx_ik_AbCd-_12"
sites = ["shop", "shop"]
expires = 2027-01-31

[[organizations]]
slug = "globex"

[[organizations.keys]]
kind = "secret"
label = "warehouse"
hash = "${'b'.repeat(64)}"
scopes = ["traces:read"]

[[organizations.endpoints]]
label = "alerts"
url = "https://hooks.example/in"
types = ["authz.*"]
secretFile = "hook.secret"
`
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const read = (text: string) => readSetupText(text, 'setup.toml', () => `${secret}\n`)

test('a complete file, with defaults for omitted fields', () => {
  const [acme, globex] = read(whole).organizations
  expect(acme).toEqual({
    at: 'setup.toml:2: organizations[0]',
    slug: 'acme',
    name: 'Acme',
    sites: [
      {
        at: 'setup.toml:6: organizations[0].sites[0]',
        siteId: 'shop',
        name: null,
        hidden: false,
        restricted: true,
        hosts: null,
      },
    ],
    keys: [
      {
        at: 'setup.toml:10: organizations[0].keys[0]',
        kind: 'ingest',
        label: 'backend',
        hash,
        prefix: 'agtx_ik_AbCd-_12',
        siteIds: ['shop'],
        scopes: [],
        behindProxy: false,
        expiresAtMs: Date.UTC(2027, 0, 31),
      },
    ],
    endpoints: [],
    alerts: [],
  })
  expect(globex).toMatchObject({ name: null, keys: [{ prefix: 'agtx_sk_', scopes: ['traces:read'] }] })
  expect(globex!.endpoints[0]).toMatchObject({ types: ['authz.*'], batchSize: 100, secret })
  expect(read('').organizations).toEqual([])
})

const mistakes: [find: string, put: string, message: RegExp][] = [
  ['kind = "ingest"', 'kind = "ingress"', /^setup\.toml:11: organizations\[0\]\.keys\[0\]\.kind: must be/],
  [
    `hash = "${hash}"`,
    'hash = "agtx_ik_x"',
    /^setup\.toml:13: organizations\[0\]\.keys\[0\]\.hash: .*SHA-256/,
  ],
  [`hash = "${hash}"`, '', /^setup\.toml:10: organizations\[0\]\.keys\[0\]: hash is missing/],
  ['restricted = true', 'restricted = "yes"', /^setup\.toml:8: .*restricted: must be true or false/],
  ['restricted = true', 'restrict = true', /^setup\.toml:8: .*: unknown field; did you mean restricted\?/],
  ['slug = "globex"', 'slug = "Globex!"', /^setup\.toml:19: organizations\[1\]\.slug: must be a slug/],
  [
    'slug = "globex"',
    'slug = "acme"',
    /^setup\.toml:18: .* duplicate organization; first defined at setup\.toml:2/,
  ],
  [`"${'b'.repeat(64)}"`, `"${hash}"`, /^setup\.toml:21: .* duplicate key; first defined/],
  ['2027-01-31', '"soon"', /^setup\.toml:16: .*expires: must be a time/],
  ['agtx_ik_AbCd-_12', 'agtx_sk_AbCd-_12', /^setup\.toml:14: .*first 16 characters/],
  ['types = ["authz.*"]', 'types = "authz.*"', /^setup\.toml:30: .*types: must be a list of strings/],
  ['label = "alerts"', 'label = = 1', /^setup\.toml:28: invalid TOML/],
]

test.each(mistakes)('%s -> %s', (find, put, message) => {
  expect(whole).toContain(find)
  const wrong = whole.replace(find, put)
  expect(() => read(wrong)).toThrow(message)
  expect(() => read(wrong)).toThrow(UsageError)
})

test('reads a secret from its file, and no message contains it', () => {
  using temp = tempDir('setup')
  const path = temp.join('setup.toml')
  writeFileSync(path, whole)
  expect(() => readSetupFile(path)).toThrow(/hook\.secret: no such file/)
  writeFileSync(temp.join('hook.secret'), `${secret}\n`)
  expect(readSetupFile(path).organizations[1]!.endpoints[0]!.secret).toBe(secret)
  writeFileSync(temp.join('hook.secret'), 'not-a-signing-secret')
  expect(() => readSetupFile(path)).toThrow(/:31: .*secretFile: the file must contain whsec_/)
  expect(() => readSetupFile(path)).not.toThrow(/not-a-signing/)
  expect(() => readSetupFile(temp.join('absent.toml'))).toThrow(/absent\.toml: no such file/)
})

/** A file with 10,000 organizations, and processor time in ms to read a text of it. */
const organizations = (count: number): string =>
  Array.from(
    { length: count },
    (_, index) => `[[organizations]]\nslug = "org-${index}"\n[[organizations.sites]]\nid = "shop"\n`,
  ).join('\n')

function readingMs(text: string): number {
  const usageBefore = process.cpuUsage()
  try {
    read(text)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
  }
  const { user, system } = process.cpuUsage(usageBefore)
  return (user + system) / 1_000
}

test.each([
  ['valid', ''],
  ['with a broken last line', 'slug = '],
  ['with a wrong last field', '[[organizations]]\nslug = "NOT A SLUG"\n'],
])('the time to read a file grows with its length and not with its square: %s', (_, last) => {
  readingMs(organizations(500) + last)
  const small = readingMs(organizations(1_000) + last)
  const large = readingMs(organizations(8_000) + last)
  expect(large / small).toBeLessThan(30)
})

test('a broken line is found also behind a text of several lines', () => {
  const broken = '[[organizations]]\nslug = "x"\nname = """\na\nb\n"""\nslug = "y\n'
  const text = `${organizations(50)}${broken}${organizations(20)}`
  const line = text.split('\n').indexOf('slug = "y') + 1
  expect(() => read(text)).toThrow(`setup.toml:${line}: invalid TOML`)
})
