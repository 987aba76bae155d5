/** `npm run build`: bundles the dashboard, compresses it, and compiles everything into `dist/sightglass`. */
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { bundleWeb } from './bundle-web.ts'
import { writeClientPackage } from './client-package.ts'
import { components, licensesText } from './components.ts'
import { precompress } from './precompress.ts'
import { newestMtimeMs } from './sources.ts'
import { dashboardPaths } from '../web/routes.ts'

export const root = join(import.meta.dir, '..')
export const executable = join(root, 'dist', 'sightglass')

const mainEntry = 'server/main.ts'

/**
 * Threads of the executable. Each is an entrypoint of its own. `root` below is the repository, so an entrypoint keeps
 * its path inside the executable: `db/sqlite/threads/writer.ts` becomes `/$bunfs/root/db/sqlite/threads/writer.js`.
 * Only the main module is at `/$bunfs/root/sightglass`, so a file that names a neighbour must use
 *   Bun.isStandaloneExecutable
 *     ? new URL('./db/sqlite/threads/writer.js', import.meta.url)  // from the main bundle
 *     : new URL('./writer.ts', import.meta.url)                    // from the file itself
 */
export const workerEntries = [
  'db/copy/thread.ts',
  'server/parquet/thread.ts',
  'db/sqlite/threads/writer.ts',
  'db/sqlite/threads/reader.ts',
  'db/postgres/connection/io.ts',
  'db/postgres/threads/appender.ts',
  'db/postgres/threads/keeper.ts',
  'db/postgres/threads/reader.ts',
  'db/postgres/threads/writer.ts',
] as const

/** Sources of the executable. A change to any of them makes it stale. */
const inputs = ['server', 'db', 'web', 'sdk', 'scripts', 'package.json', 'bun.lock', 'tsconfig.json'] as const

/** Builds when any source is newer than the executable. Returns whether it built. */
export async function buildIfStale(): Promise<boolean> {
  const builtMs = existsSync(executable) ? statSync(executable).mtimeMs : 0
  if (newestMtimeMs(inputs.map((name) => join(root, name))) <= builtMs) return false
  await build()
  return true
}

/** Throws an Error with an actionable message. Safe to run twice at once: each run uses its own folder. */
async function build(): Promise<void> {
  const startedAt = new Date()
  requireInputs()
  const work = join(root, 'dist', `.building-${process.pid}`)
  rmSync(work, { recursive: true, force: true })
  mkdirSync(work, { recursive: true })
  try {
    const assets = await prepareAssets(work)
    await compile(join(work, 'sightglass'), assets.embedded)
    // Sources saved during the build must count as newer than the build.
    utimesSync(join(work, 'sightglass'), startedAt, startedAt)
    swap(assets.web, join(root, 'dist', 'web'), work)
    swap(assets.clientPackage, join(root, 'dist', 'client-package'), work)
    renameSync(join(work, 'sightglass'), executable)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

interface Assets {
  web: string
  licenses: string
  clientPackage: string
  /** What `compile` embeds of them. */
  embedded: string[]
}

/** The folders embedded in every executable, for any target. */
export async function prepareAssets(work: string): Promise<Assets> {
  const web = join(work, 'web')
  const clientPackage = join(work, 'client-package')
  await bundleWeb({ root, outDir: web, minify: true })
  await precompress(web, dashboardPaths)
  const licenses = join(work, 'licenses')
  await Promise.all([writeLicenses(licenses), writeClientPackage(clientPackage)])
  return { web, licenses, clientPackage, embedded: inOrder([web, licenses, clientPackage], work) }
}

/**
 * Folders of one file each, which Bun embeds one after the other. It takes the files of a folder in the order of the
 * file system, which differs between machines: the same sources would build another executable.
 */
function inOrder(folders: string[], work: string): string[] {
  return folders.flatMap((folder) => {
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    )
    const paths = files.map((entry) => relative(folder, join(entry.parentPath, entry.name))).sort()
    return paths.map((path, index) => {
      const alone = join(work, 'embedded', String(index), basename(folder))
      mkdirSync(join(alone, dirname(path)), { recursive: true })
      linkSync(join(folder, path), join(alone, path))
      return alone
    })
  })
}

function requireInputs(): void {
  const missing = [mainEntry, 'web/index.html', ...workerEntries].filter(
    (path) => !existsSync(join(root, path)),
  )
  if (missing.length > 0) throw new Error(`build: missing ${missing.join(', ')}`)
}

/** The licences that `sightglass licenses` prints, and from which the bill of materials is made. */
async function writeLicenses(folder: string): Promise<void> {
  const shippedComponents = await components(root, {
    server: [mainEntry, ...workerEntries],
    web: ['web/index.html'],
  })
  mkdirSync(folder)
  writeFileSync(join(folder, 'licenses.txt'), licensesText(shippedComponents))
  const list = shippedComponents.map(({ name, version, license }) => ({ name, version, license }))
  writeFileSync(join(folder, 'components.json'), JSON.stringify({ components: list }))
}

/** Without a target it builds for this machine. The name of `outfile` is part of the bytes, its folder is not. */
export async function compile(
  outfile: string,
  assets: string[],
  target?: Bun.Build.CompileTarget,
): Promise<void> {
  const result = await Bun.build({
    entrypoints: [mainEntry, ...workerEntries].map((path) => join(root, path)),
    root,
    target: 'bun',
    format: 'esm', // bytecode's default, cjs, would break import.meta and top-level await
    minify: { whitespace: true, syntax: true, identifiers: true, keepNames: true }, // names of errors are in logs
    bytecode: true,
    splitting: true, // modules that threads share are there once, and those behind `import()` load when they are used
    sourcemap: 'linked', // embedded, so that stack traces name our lines
    define: { 'process.env.NODE_ENV': '"production"' }, // --compile alone inlines "development"
    compile: {
      outfile,
      ...(target === undefined ? {} : { target }),
      assets,
      autoloadDotenv: false,
      autoloadBunfig: false,
    },
    throw: false,
  })
  if (!result.success) throw new Error(`build: ${result.logs.map(String).join('\n')}`)
}

/** Replaces the folder `to` with `from` in two renames, so that no reader sees a partial folder. */
function swap(from: string, to: string, work: string): void {
  if (existsSync(to)) renameSync(to, join(work, `previous-${basename(to)}`))
  renameSync(from, to)
}

if (import.meta.main) {
  const startMs = performance.now()
  try {
    await build()
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(1)
  }
  const mebibytes = (statSync(executable).size / 1024 / 1024).toFixed(1)
  process.stdout.write(`dist/sightglass ${mebibytes} MiB in ${Math.round(performance.now() - startMs)} ms\n`)
}
