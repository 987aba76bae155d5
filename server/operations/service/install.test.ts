/** The unit: arguments that systemd reads back unchanged, and no more rights than it needs. */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { installedUnit, unitText } from './install.ts'

const plainUnit = {
  executable: '/usr/local/bin/sightglass',
  flags: [],
  lowPort: false,
  writableFolders: [],
  runtimeFolder: false,
  account: 'dynamic' as const,
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

test('an installed unit is read as systemd reads it', () => {
  using dir = tempDir('unit')
  const flags = ['--data-dir=/srv/50% of "$HOME"', '--listen=[::1]:7400']
  writeFileSync(dir.join('sightglass.service'), unitText({ ...plainUnit, flags }))
  const read =
    Bun.which('systemctl') === null
      ? null
      : { executable: plainUnit.executable, dataDir: '/srv/50% of "$HOME"' }
  expect(installedUnit(dir.path)).toEqual(read)
  expect(installedUnit(dir.join('none'))).toBeNull()
})

test('an account that a package created is no dynamic one', () => {
  expect(unitText(plainUnit)).toContain('\nDynamicUser=yes\nUser=sightglass\n')
  const unit = unitText({ ...plainUnit, account: 'static' })
  expect([unit.includes('DynamicUser'), unit.includes('\nUser=sightglass\n')]).toEqual([false, true])
})
