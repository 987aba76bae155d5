/** Shared by the tests of the client package: an appliance with its three keys, and the package as npm delivers it. */
import { cpSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildPackage } from '../../sdk/build.ts'
import { createGateway } from '../../sdk/node.ts'
import { type Appliance, type ApplianceOptions, startAppliance } from '../support/binary.ts'
import { madeOnce } from '../support/made-once.ts'
import { run } from '../support/process.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'

export interface Keys {
  ingestKey: string
  publishableKey: string
  secretKey: string
}

export async function makeKeys(appliance: Appliance): Promise<Keys> {
  const make = async (kind: string): Promise<string> => {
    const args = ['--kind', kind, '--org', 'default', '--label', `sdk ${kind}`, '--json']
    const keyResult = await appliance.cli('key', 'create', ...args)
    if (keyResult.code !== 0) throw new Error(keyResult.stderr)
    return (JSON.parse(keyResult.stdout) as { key: string }).key
  }
  return {
    ingestKey: await make('ingest'),
    publishableKey: await make('publishable'),
    secretKey: await make('secret'),
  }
}

export async function startWithKeys(
  options: ApplianceOptions = {},
): Promise<{ appliance: Appliance; keys: Keys }> {
  const appliance = await startAppliance(options)
  return { appliance, keys: await makeKeys(appliance) }
}

/** The environment that the README's program and the examples read. */
export function hostEnv(url: string, keys: Keys): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    PORT: '0',
    SIGHTGLASS_URL: url,
    SIGHTGLASS_INGEST_KEY: keys.ingestKey,
    SIGHTGLASS_PUBLISHABLE_KEY: keys.publishableKey,
  }
}

/** Ids of all events of the organization, newest first, read through the gateway client. */
export async function storedIds(url: string, secretKey: string): Promise<string[]> {
  const ids: string[] = []
  for await (const event of createGateway({ url, secretKey }).traces()) ids.push(event.id)
  return ids
}

export interface Project extends Disposable {
  dir: TempDir
  tarballBytes: number
}

/** Folder of the built package, apart from `dist`, which another run may be writing. */
export function builtPackage(): Promise<string> {
  return madeOnce('package', buildPackage)
}

/** An empty project with the packed package installed from its tarball, without a network. */
export async function installedProject(): Promise<Project> {
  const dir = tempDir('project')
  cpSync(await madeOnce('project', install), dir.path, { recursive: true, verbatimSymlinks: true })
  const tarball = readdirSync(dir.path).find((name) => name.endsWith('.tgz'))!
  return { dir, tarballBytes: statSync(dir.join(tarball)).size, [Symbol.dispose]: () => dir.remove() }
}

async function install(folder: string): Promise<void> {
  const packageDir = await builtPackage()
  using cache = tempDir('npm')
  const npm = async (args: string[], cwd: string): Promise<string> => {
    const child = run(['npm', ...args], {
      cwd,
      env: { PATH: process.env.PATH ?? '', HOME: cache.path, npm_config_cache: cache.join('npm') },
    })
    if ((await child.exited) !== 0) throw new Error(`npm ${args.join(' ')}: ${child.stderr()}`)
    return child.stdout()
  }
  const packed = await npm(['pack', '--json', '--pack-destination', folder], packageDir)
  const [tarball] = JSON.parse(packed) as { filename: string }[]
  if (tarball === undefined) throw new Error(packed)
  writeFileSync(join(folder, 'package.json'), '{"name":"host","private":true,"type":"module"}\n')
  await npm(['install', '--offline', '--no-audit', '--no-fund', join(folder, tarball.filename)], folder)
}

/** Lets the project import a package of this checkout, as if it had installed it. */
export function linkPackage({ dir }: Project, name: string): void {
  mkdirSync(dir.join('node_modules'), { recursive: true })
  symlinkSync(join(import.meta.dir, '../../node_modules', name), dir.join('node_modules', name))
}
