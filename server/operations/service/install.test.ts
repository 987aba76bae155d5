/** The unit and the container file: arguments that systemd reads back unchanged, and existing options. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { environmentTwin } from '../../cli/option.ts'
import { commonOptions, serveOptions } from '../../cli/options.ts'
import { unitText } from './install.ts'

const plainUnit = {
  executable: '/usr/local/bin/sightglass',
  flags: [],
  lowPort: false,
  writableFolders: [],
  runtimeFolder: false,
}
const execStart = (flags: string[]) => /^ExecStart=(.*)$/m.exec(unitText({ ...plainUnit, flags }))![1]

test('arguments that systemd would expand or split are escaped', () => {
  expect(execStart(['--listen=[::1]:7400'])).toBe('/usr/local/bin/sightglass serve "--listen=[::1]:7400"')
  expect(execStart(['--data-dir=/srv/50% of $HOME'])).toBe(
    '/usr/local/bin/sightglass serve "--data-dir=/srv/50%% of $$HOME"',
  )
  expect(execStart(['--label="a" \\ b'])).toBe('/usr/local/bin/sightglass serve "--label=\\"a\\" \\\\ b"')
})

test('only the given folders are writable, and only a low port gets a capability', () => {
  expect(unitText(plainUnit)).not.toMatch(/ReadWritePaths|CAP_/)
  const unit = unitText({ ...plainUnit, lowPort: true, writableFolders: ['/mnt/nas', '/mnt/a b'] })
  expect(unit).toContain('ReadWritePaths=/mnt/nas\nReadWritePaths="/mnt/a b"\n')
  expect(unit.match(/CAP_\w+/g)).toEqual(['CAP_NET_BIND_SERVICE', 'CAP_NET_BIND_SERVICE'])
})

test("a runtime folder for sockets is created on request, accessible to the proxy's group", () => {
  expect(unitText(plainUnit)).not.toContain('RuntimeDirectory')
  const unit = unitText({ ...plainUnit, runtimeFolder: true })
  expect(unit).toContain('\nRuntimeDirectory=sightglass\nRuntimeDirectoryMode=0750\n')
})

test('the container file sets options that exist', () => {
  const text = readFileSync(join(import.meta.dir, 'container.dockerfile'), 'utf8')
  const set = [...text.matchAll(/SIGHTGLASS_\w+/g)].map(([name]) => name)
  expect(set.length).toBe(2)
  for (const name of set)
    expect(Object.keys({ ...serveOptions, ...commonOptions }).map(environmentTwin)).toContain(name)
})
