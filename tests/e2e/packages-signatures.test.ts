/** Signatures of packages and checksums, verified with the programs that users have: gpg, rpm and debsig-verify. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../../scripts/build.ts'
import { pack } from '../../scripts/packages/archive.ts'
import { deb } from '../../scripts/packages/deb.ts'
import { armour, openPgpKey } from '../../scripts/packages/openpgp.ts'
import { rpm } from '../../scripts/packages/rpm.ts'
import { testWith } from '../support/installed.ts'
import { run } from '../support/process.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)

let dir: TempDir
const key = openPgpKey(generateKeyPairSync('ed25519').privateKey, 'Releases <packages@sightglass.invalid>')
const texts = {
  manual: 'manual',
  license: 'licence',
  changelog: 'changes',
  thirdParty: 'others',
  completions: { bash: 'bash', zsh: 'zsh', fish: 'fish' },
}
const releaseParts = { version: '1.0.0', executable: pack(Buffer.from('#!/bin/sh\n')), texts, key }

beforeAll(() => {
  dir = tempDir('signatures')
  writeFileSync(dir.join('key.asc'), key.publicKey)
})
afterAll(() => dir.remove())

interface Ended {
  code: number
  text: string
}

async function ended(...command: string[]): Promise<Ended> {
  const child = run(command, { cwd: dir.path, env: { PATH: process.env['PATH'] ?? '', HOME: dir.path } })
  return { code: await child.exited, text: `${child.stdout()}${child.stderr()}` }
}

/** As the operations guide has it. */
function debsigPolicy(id: string): string {
  const guide = readFileSync(join(root, 'server/guide/operations.md'), 'utf8')
  return /```xml\n([^]*?)```/.exec(guide)![1]!.replaceAll('KEYID', id)
}

/** A copy of the file with one bit changed. */
function altered(name: string, byteIndex: number): string {
  const bytes = readFileSync(dir.join(name))
  bytes[byteIndex]! ^= 1
  writeFileSync(dir.join(`altered-${name}`), bytes)
  return `altered-${name}`
}

testWith(
  'gpg',
  'gpg verifies signatures, also those whose numbers begin with zeros, and no altered text',
  async () => {
    mkdirSync(dir.join('.gnupg'), { mode: 0o700 })
    expect((await ended('gpg', '--batch', '--import', 'key.asc')).code).toBe(0)
    const listed = await ended('gpg', '--batch', '--with-colons', '--list-keys')
    expect(listed.text).toContain(`fpr:::::::::${key.fingerprint}:`)
    const signed = Array.from({ length: 5_000 }, (_, number) => {
      const text = Buffer.from(`text ${number}\n`)
      return { text, packet: key.sign(text) }
    })
    // The two numbers at its end are written without the zeros that they begin with.
    const byLength = new Map(signed.map((signature) => [signature.packet.length, signature]))
    expect(byLength.size).toBeGreaterThanOrEqual(2)
    for (const [kind, { text, packet }] of byLength) {
      writeFileSync(dir.join('text'), text)
      writeFileSync(dir.join('text.asc'), armour('SIGNATURE', packet))
      expect([kind, (await ended('gpg', '--batch', '--verify', 'text.asc', 'text')).code]).toEqual([kind, 0])
      const alteredResult = await ended('gpg', '--batch', '--verify', 'text.asc', altered('text', 0))
      expect([alteredResult.code, alteredResult.text]).toEqual([1, expect.stringContaining('BAD signature')])
    }
  },
)

testWith('rpmkeys', 'rpm verifies the signature of a package, and refuses an altered one', async () => {
  writeFileSync(dir.join('a.rpm'), rpm(releaseParts, 'x86_64'))
  mkdirSync(dir.join('rpm'))
  const rpmkeys = (...args: string[]) => ended('rpmkeys', '--dbpath', dir.join('rpm'), ...args)
  const unknown = await rpmkeys('--checksig', '--verbose', 'a.rpm')
  expect([unknown.code, unknown.text]).toEqual([1, expect.stringContaining('NOKEY')])
  expect((await rpmkeys('--import', 'key.asc')).code).toBe(0)
  const verified = await rpmkeys('--checksig', '--verbose', 'a.rpm')
  expect([verified.code, verified.text]).toEqual([
    0,
    expect.stringMatching(
      new RegExp(`Header V4 EdDSA/SHA256 Signature, key ID ${key.fingerprint.slice(-8)}: OK`, 'i'),
    ),
  ])
  const place = readFileSync(dir.join('a.rpm')).indexOf('/usr/bin/')
  const { code, text } = await rpmkeys('--checksig', '--verbose', altered('a.rpm', place))
  expect([code, text]).toEqual([1, expect.stringMatching(/EdDSA.*BAD/)])
})

testWith(
  'debsig-verify',
  'debsig-verify accepts a package, and refuses an altered or unsigned one',
  async () => {
    writeFileSync(dir.join('a.deb'), deb(releaseParts, 'amd64'))
    writeFileSync(dir.join('unsigned.deb'), deb({ ...releaseParts, key: null }, 'amd64'))
    const id = key.fingerprint.slice(-16)
    for (const folder of ['policies', 'keyrings']) mkdirSync(dir.join(folder, id), { recursive: true })
    writeFileSync(dir.join('policies', id, 'sightglass.pol'), debsigPolicy(id))
    const keyring = dir.join('keyrings', id, 'sightglass.gpg')
    expect((await ended('gpg', '--batch', '--output', keyring, '--dearmor', 'key.asc')).code).toBe(0)
    const places = ['--policies-dir', dir.join('policies'), '--keyrings-dir', dir.join('keyrings')]
    const verify = (name: string) => ended('debsig-verify', ...places, name)
    expect(await verify('a.deb')).toMatchObject({ code: 0 })
    const size = readFileSync(dir.join('a.deb')).length
    const unsigned = await verify('unsigned.deb')
    const foreignKey = await verify(altered('a.deb', size - 400))
    expect([unsigned.code, foreignKey.code]).toEqual([10, 13])
  },
)

test('the same key signs the same bytes alike, and only Ed25519 keys sign', () => {
  expect(Buffer.from(rpm(releaseParts, 'x86_64')).equals(rpm(releaseParts, 'x86_64'))).toBe(true)
  expect(Buffer.from(deb(releaseParts, 'amd64')).equals(deb(releaseParts, 'amd64'))).toBe(true)
  const other = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey
  expect(() => openPgpKey(other, 'x')).toThrow('Ed25519')
})
