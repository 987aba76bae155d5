/** What programs about releases share: making releases of changed sources, and the life of a package. */
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { root as repository } from '../../scripts/build.ts'
import type { TargetName } from '../../scripts/release-targets.ts'
import { version } from '../../server/system/version.ts'
import { tempDir } from '../support/temp-dir.ts'

export const ownTarget = `${process.platform}-${process.arch}` as TargetName

export function expectEqual(label: string, actualValue: unknown, expected: unknown): void {
  if (!Bun.deepEquals(actualValue, expected))
    throw new Error(`${label}: ${JSON.stringify(actualValue)}, expected ${JSON.stringify(expected)}`)
  console.log(`ok  ${label}: ${JSON.stringify(actualValue)}`)
}

/** Its standard output. Throws with all of its output when it fails. */
export async function succeed(
  args: string[],
  { cwd = tmpdir(), env = {} }: { cwd?: string; env?: Record<string, string> } = {},
): Promise<string> {
  const child = Bun.spawn(args, { cwd, env: { ...process.env, ...env }, stdout: 'pipe', stderr: 'pipe' })
  const [code, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  if (code !== 0) throw new Error(`${args.join(' ')}: ${code}\n${stdout}${stderr}`)
  return stdout
}

/** The sources with another version, as those of another release. */
export function copySources(folder: string, otherVersion: string): string {
  const list = ['git', 'ls-files', '--cached', '--others', '--exclude-standard']
  for (const path of Bun.spawnSync(list, { cwd: repository }).stdout.toString().trim().split('\n')) {
    if (!existsSync(join(repository, path))) continue
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    cpSync(join(repository, path), join(folder, path))
  }
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'))
  change(join(folder, 'package.json'), `"version": "${version}"`, `"version": "${otherVersion}"`)
  return folder
}

/** Replaces a text that the file must have. */
export function change(path: string, from: string, to: string): void {
  const text = readFileSync(path, 'utf8')
  if (!text.includes(from)) throw new Error(`${path} has no ${from}`)
  writeFileSync(
    path,
    text.replace(from, () => to),
  )
}

export async function release(sources: string, out: string, ...releaseArgs: string[]): Promise<void> {
  await succeed(
    [process.execPath, 'scripts/release.ts', '--out', out, '--targets', ownTarget, ...releaseArgs],
    {
      cwd: sources,
    },
  )
}

export interface Life {
  before: {
    hint: string
    verified: string
    version: string
    ownAccount: boolean
    secretMode: string
    asked: string[]
    files: boolean[]
  }
  posted: number
  upgraded: { version: string; restarted: boolean; configKept: boolean; posted: number; events: number }
  removed: { said: string; stopped: boolean; executable: boolean; data: boolean; account: boolean }
  purged: { said: string; config: boolean; data: boolean } | null
}

interface LifeOptions {
  kind: 'deb' | 'rpm'
  lower: string // the root folder below
  older: string
  newer: string
}

/** Throws with the output when a step fails. Needs root. */
export async function lifeOfPackage({ kind, lower, older, newer }: LifeOptions): Promise<Life> {
  using dir = tempDir('root')
  for (const name of ['changes', 'work', 'root']) mkdirSync(dir.join(name))
  const root = dir.join('root')
  const layers = `lowerdir=${lower},upperdir=${dir.join('changes')},workdir=${dir.join('work')}`
  const database = `${root}/var/lib/dpkg`
  const steps = [
    'ip link set lo up',
    `mount -t overlay overlay -o ${layers} ${root}`,
    `mount -t proc proc ${root}/proc`,
    `mount --rbind /dev ${root}/dev`,
    `mkdir -p ${root}/older ${root}/newer`,
    `mount --bind ${dirname(older)} ${root}/older && mount --bind ${dirname(newer)} ${root}/newer`,
    // On the machine's own system dpkg would first read the names of all files of all packages.
    ...(lower === '/'
      ? [
          `mount -t tmpfs tmpfs ${database} && mkdir ${database}/info ${database}/updates`,
          `dpkg-query --status libc6 passwd > ${database}/status`,
        ]
      : []),
    'exec "$@"',
  ]
  const packagePaths = [`/older/${basename(older)}`, `/newer/${basename(newer)}`]
  const inside = [process.execPath, join(import.meta.dir, 'packages-inside.ts'), kind, root, ...packagePaths]
  const child = Bun.spawn(['unshare', '--mount', '--net', 'sh', '-c', steps.join(' && '), 'sh', ...inside], {
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  if (code !== 0) throw new Error(`${kind}: ${code}\n${stdout}${stderr}`)
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Life
}
