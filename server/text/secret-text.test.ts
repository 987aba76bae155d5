/** The same secret by environment, file and hand, whatever marks, line ends and forms of letters surround it. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { writeFileSync } from 'node:fs'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { commands } from '../cli/run.ts'
import { readInvocation } from '../cli/config.ts'
import { environmentTwin, type Option } from '../cli/option.ts'
import { serveOptions } from '../cli/options.ts'
import { UsageError } from '../errors.ts'
import {
  canonicalPassphrase,
  canonicalPassword,
  passphraseForms,
  passwordForms,
  trimSecret,
} from './secret-text.ts'

const mark = fc.constantFrom('', '\uFEFF')
const lineEnd = fc.constantFrom('', '\n', '\r\n', '\n\n', '\r')
const secret = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 40 })
  .filter((text) => /^[^\r\n\uFEFF].*[^\r\n]$/s.test(text))

test('a mark before a secret and line ends behind it are no part of it, and everything else is', () => {
  fc.assert(
    fc.property(mark, secret, lineEnd, (prefix, text, behind) => {
      expect(trimSecret(prefix + text + behind)).toBe(text)
    }),
  )
})

test('every form of the same letters is one password, and earlier hashes of each form match', () => {
  fc.assert(
    fc.property(secret, lineEnd, (text, behind) => {
      const forms = [text, text.normalize('NFC'), text.normalize('NFD')]
      for (const form of forms) expect(canonicalPassword(form + behind)).toBe(canonicalPassword(text))
      for (const form of forms) expect(passwordForms(form)).toContain(form)
      expect(passwordForms(text.normalize('NFC'))).toContain(text.normalize('NFD'))
    }),
  )
  expect(passwordForms('correct horse')).toEqual(['correct horse'])
  expect(canonicalPassword('a\u00a0b\u3000c')).toBe('a b c')
})

test('a passphrase opens backups that an earlier release encrypted with its line end or mark', () => {
  fc.assert(
    fc.property(mark, secret, fc.constantFrom('', '\n', '\r\n'), (prefix, text, behind) => {
      const earlier = (prefix + text + behind).normalize('NFC')
      expect(passphraseForms(text)).toContain(earlier)
      expect(passphraseForms(prefix + text + behind)[0]).toBe(canonicalPassphrase(text))
    }),
  )
})

const values: { [option: string]: string } = {
  database: 'postgres://u:p@h/d',
  'key-ring': 'ab'.repeat(32),
  'webhook-proxy': 'http://u:p@proxy:8080',
  'smtp-url': 'smtp://u:p@mail:25',
}

describe('every secret of a server', () => {
  const textOf = (args: string[], environment: { [name: string]: string }, name: string) =>
    readInvocation(['serve', ...args], environment, commands).settings.find(
      (setting) => setting.name === name,
    )?.text
  const secrets = Object.entries<Option>(serveOptions).filter(([, option]) => option.secret)
  const wrapped = (text: string) => [text, `${text}\n`, `${text}\r\n`, `\uFEFF${text}\r\n`, `${text}\n\n`]

  test.each(secrets.map(([name]) => name))('--%s is the same by environment, file and credential', (name) => {
    using ownFolder = tempDir('secret')
    const twin = environmentTwin(name)
    const text = values[name] ?? 'a-long-enough-secret'
    const path = ownFolder.join('file')
    const credential = ownFolder.join(`sightglass.${name}`)
    for (const wrappedText of wrapped(text)) {
      writeFileSync(path, wrappedText)
      writeFileSync(credential, wrappedText)
      expect(textOf([], { [twin]: wrappedText }, name)).toBe(text)
      expect(textOf([], { [`${twin}_FILE`]: path }, name)).toBe(text)
      expect(textOf([], { CREDENTIALS_DIRECTORY: ownFolder.join('.') }, name)).toBe(text)
    }
    // PowerShell writes UTF-16.
    writeFileSync(path, Buffer.from(`\uFEFF${text}\r\n`, 'utf16le'))
    expect(textOf([], { [`${twin}_FILE`]: path }, name)).toBe(text)
    for (const [bytes, reason] of [
      [Buffer.from('caf\xe9 cr\xe8me', 'latin1'), 'UTF-8'],
      [Buffer.from('\n'), 'empty'],
    ] as const) {
      writeFileSync(path, bytes)
      expect(() => textOf([], { [`${twin}_FILE`]: path }, name)).toThrow(UsageError)
      expect(() => textOf([], { [`${twin}_FILE`]: path }, name)).toThrow(reason)
    }
  })
})
