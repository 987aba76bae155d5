/** Debian's packages, with an `apt-get` that knows which exist. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { tempDir } from '../tests/support/temp-dir.ts'
import { installGroups } from './programs.ts'

const dir = tempDir()
const path = process.env['PATH']
const aptGet = `#!/bin/sh
echo "$*" >> "$(dirname "$0")/calls"
case " $* " in *" absent "*) echo "Unable to locate package absent"; exit 100;; esac
`

beforeAll(() => {
  writeFileSync(dir.join('apt-get'), aptGet, { mode: 0o755 })
  process.env['PATH'] = `${dir.path}:${path}`
})
afterAll(() => {
  process.env['PATH'] = path
  dir[Symbol.dispose]()
})

/** The packages of each installation. */
function installations(): string[] {
  const calls = readFileSync(dir.join('calls'), 'utf8').trimEnd().split('\n')
  writeFileSync(dir.join('calls'), '')
  return calls.filter((line) => line.includes(' install ')).map((line) => line.split('recommends ')[1]!)
}

const mayInstall = process.getuid?.() === 0
if (!mayInstall) console.warn('only root installs packages: their test is left out')

test.if(mayInstall)('all packages at once, or a failing group alone', async () => {
  const three = { one: ['a', 'b'], two: [], three: ['c'] }
  expect(await installGroups(three)).toEqual({ one: null, two: null, three: null })
  expect(installations()).toEqual(['a b c'])
  const failing = { one: ['a'], two: ['absent'], three: [] }
  const { two, ...otherGroups } = await installGroups(failing)
  expect(otherGroups).toEqual({ one: null, three: null })
  expect(two).toContain('Unable to locate package absent')
  expect(installations()).toEqual(['a absent', 'a', 'absent'])
  expect(await installGroups({ two: ['absent'] })).toEqual({
    two: expect.stringContaining('Unable to locate'),
  })
  expect(installations()).toEqual(['absent'])
})
