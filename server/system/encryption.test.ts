/** The key file is created once, private and complete; secrets decrypt only for their purpose and with their key. */
import { expect, test } from 'bun:test'
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { keyFileName, lazySecretBox, openSecretBox } from './encryption.ts'

test('secrets decrypt after a restart, for their purpose only', () => {
  using folder = tempDir('secrets')
  const sealed = openSecretBox(folder.path).seal('endpoint:ep_1', 'whsec_geheim')
  const later = openSecretBox(folder.path)
  expect(later.open('endpoint:ep_1', sealed)).toBe('whsec_geheim')
  expect(() => later.open('endpoint:ep_2', sealed)).toThrow()
  expect(() => later.open('endpoint:ep_1', `${sealed.slice(0, -2)}AA`)).toThrow()
  expect(sealed).not.toContain('geheim')
})

test('the same secret encrypts differently each time', () => {
  using folder = tempDir('secrets')
  const box = openSecretBox(folder.path)
  expect(box.seal('p', 's')).not.toBe(box.seal('p', 's'))
})

test('the key file is accessible to its owner only, also after its mode was changed', () => {
  using folder = tempDir('secrets')
  const path = folder.join(keyFileName)
  openSecretBox(folder.path)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readFileSync(path, 'utf8')).toMatch(/^[0-9a-f]{64}\n$/)
  chmodSync(path, 0o644)
  openSecretBox(folder.path)
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test('a lazy box creates its key file on first use', () => {
  using folder = tempDir('secrets')
  const box = lazySecretBox(folder.path)
  expect(existsSync(folder.join(keyFileName))).toBe(false)
  expect(openSecretBox(folder.path).open('p', box.seal('p', 's'))).toBe('s')
})

test('another key and a corrupt key file have distinct errors', () => {
  using one = tempDir('secrets')
  using other = tempDir('secrets')
  const sealed = openSecretBox(one.path).seal('p', 's')
  expect(() => openSecretBox(other.path).open('p', sealed)).toThrow(/is encrypted with the key/)
  writeFileSync(one.join(keyFileName), 'abc')
  expect(() => openSecretBox(one.path)).toThrow(/is corrupt/)
})
