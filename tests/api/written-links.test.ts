/** Commands write no file through a symbolic link that somebody put where they write. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { run } from '../support/process.ts'
import { binaryPath, cleanEnv, cli } from '../support/binary.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)

const folder = tempDir('links')
const dataDir = folder.join('data')
const victim = folder.join('victim')
beforeAll(async () => {
  expect((await cli(['org', 'create', '--name', 'Acme', '--slug', 'acme'], { dataDir })).code).toBe(0)
  writeFileSync(victim, '{"theirs":true}')
})
afterAll(() => folder[Symbol.dispose]())

async function inFolder(cwd: string, args: string[]): Promise<{ code: number | null; stderr: string }> {
  const env = cleanEnv({ HOME: cwd, SIGHTGLASS_DATA_DIR: dataDir })
  const child = run([binaryPath, ...args], { cwd, env })
  return { code: await child.exited, stderr: child.stderr() }
}

const links: { [client: string]: { link: string; isFolder: boolean } } = {
  claude: { link: '.mcp.json', isFolder: false },
  cursor: { link: '.cursor', isFolder: true },
  codex: { link: '.codex', isFolder: true },
  vscode: { link: '.vscode', isFolder: true },
}

test.each(Object.entries(links))('mcp config --client %s --write', async (client, { link, isFolder }) => {
  const project = folder.join(`project-${client}`)
  const elsewhere = folder.join(`elsewhere-${client}`)
  mkdirSync(project)
  mkdirSync(elsewhere)
  symlinkSync(isFolder ? elsewhere : victim, `${project}/${link}`)
  const { code, stderr } = await inFolder(project, ['mcp', 'config', '--client', client, '--write', '--yes'])
  expect([code, stderr]).toEqual([1, expect.stringContaining('is a symbolic link')])
  expect(readdirSync(elsewhere)).toEqual([])
  expect(readFileSync(victim, 'utf8')).toBe('{"theirs":true}')
  expect(lstatSync(`${project}/${link}`).isSymbolicLink()).toBe(true)
})

test.each([
  ['export audit', ['export', 'audit', '--org', 'acme']],
  ['export traces', ['export', 'traces', '--org', 'acme']],
  ['export metrics', ['export', 'metrics', '--org', 'acme']],
])('%s --out', async (_name, args) => {
  const dangling = folder.join('dangling')
  if (lstatSync(dangling, { throwIfNoEntry: false }) === undefined)
    symlinkSync(folder.join('not-there'), dangling, 'file')
  const link = folder.join(`link-${args[1]}`)
  symlinkSync(victim, link)
  for (const [path, extraArgs] of [
    [link, ['--yes']],
    [dangling, []],
  ] as const) {
    const { code, stderr } = await cli([...args, '--out', path, ...extraArgs], { dataDir })
    expect([code, stderr]).toEqual([1, expect.stringContaining('is a symbolic link')])
  }
  expect([readFileSync(victim, 'utf8'), existsSync(folder.join('not-there'))]).toEqual([
    '{"theirs":true}',
    false,
  ])
})
