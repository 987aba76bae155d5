/** Runs the life of a package in a root folder over another one, which does not change. */
import { mkdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { tempDir } from '../support/temp-dir.ts'

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
  const named = [`/older/${basename(older)}`, `/newer/${basename(newer)}`]
  const inside = [process.execPath, join(import.meta.dir, 'packages-inside.ts'), kind, root, ...named]
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
