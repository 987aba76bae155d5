/** run.mjs in a small repository: arguments, exit codes, signals, and messages when a step fails. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { run, type Running } from '../tests/support/process.ts'
import { tempDir, type TempDir } from '../tests/support/temp-dir.ts'

let house: TempDir

/** Prints its arguments; with `wait` it runs until it is terminated and then exits with code 5. */
const verb = `
process.on('SIGTERM', () => process.exit(5))
console.log(JSON.stringify({ pid: process.pid, args: process.argv.slice(2), leaked: process.env.LEAK ?? null }))
if (process.argv[2] === 'wait') setInterval(() => {}, 1e6)
else process.exit(3)
`

beforeAll(() => {
  house = tempDir('house')
  mkdirSync(house.join('scripts'))
  copyFileSync(join(import.meta.dir, 'run.mjs'), house.join('scripts/run.mjs'))
  writeFileSync(house.join('scripts/check.ts'), verb)
  writeFileSync(house.join('.env'), 'LEAK=1\n')
  // A package in its own folder makes a lock file without a network.
  mkdirSync(house.join('part'))
  writeFileSync(house.join('part/package.json'), '{ "name": "part", "version": "1.0.0" }')
  writeManifest({ part: 'file:./part' })
  Bun.spawnSync([process.execPath, 'install'], { cwd: house.path, stdout: 'ignore', stderr: 'ignore' })
})
afterAll(() => house.remove())

function writeManifest(dependencies: Record<string, string>): void {
  const manifest = { name: 'house', packageManager: `bun@${Bun.version}`, dependencies }
  writeFileSync(house.join('package.json'), JSON.stringify(manifest))
}

const environment = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, HOME: '/nonexistent' }
const start = (args: string[], env: Record<string, string> = environment): Running =>
  run([process.execPath, '--no-env-file', 'scripts/run.mjs', ...args], { cwd: house.path, env })

test('arguments and exit code are passed through, the .env of the folder is not', async () => {
  const child = start(['check', '--listen', 'a b', '--'])
  expect(await child.exited).toBe(3)
  expect(JSON.parse(child.stdout())).toMatchObject({ args: ['--listen', 'a b', '--'], leaked: null })
  expect(existsSync(house.join('node_modules/.installed'))).toBe(true)
})

test('prints nothing when there is nothing to do', async () => {
  await start(['check']).exited
  const child = start(['check'])
  await child.exited
  expect(child.stderr()).toBe('')
})

test('an unknown verb is rejected with the list of verbs', async () => {
  const child = start(['fly'])
  expect(await child.exited).toBe(1)
  expect(child.stderr()).toContain('start|build|test|check|dev')
})

test('a lock file that does not match is reported, and nothing runs', async () => {
  writeManifest({ part: 'file:./part', 'absent-package': '1.0.0' })
  const child = start(['check'])
  expect(await child.exited).toBe(1)
  expect(child.stderr()).toContain('could not install the packages of bun.lock')
  expect(child.stdout()).toBe('')
  writeManifest({ part: 'file:./part' })
})

test('SIGTERM reaches the verb, and its exit code is returned', async () => {
  const child = start(['check', 'wait'])
  await child.line((line) => (line.startsWith('{') ? line : null), 10_000)
  child.signal('SIGTERM')
  expect(await child.exited).toBe(5)
})

test('below a package manager the verb ends with the shell that ran it', async () => {
  const env = { ...environment, npm_lifecycle_event: 'start' }
  // The `:` keeps the shell from becoming the command, as it is when npm runs a script.
  const shell = run(['sh', '-c', `"${process.execPath}" scripts/run.mjs check wait; :`], {
    cwd: house.path,
    env,
  })
  const pid = await shell.line((line) => Number(/"pid":(\d+)/.exec(line)?.[1]) || null, 10_000)
  shell.signal('SIGKILL')
  await shell.exited // stdout closes when the last process that holds it exits
  expect(() => process.kill(pid, 0)).toThrow()
})
