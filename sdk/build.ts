/** `bun sdk/build.ts`: builds the package, JavaScript and declarations, in `dist/sdk`. */
import { copyFileSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import compiler from 'typescript/package.json'
import { userAgent } from './wire/request.ts'

const root = join(import.meta.dir, '..')

interface Manifest {
  private: true
  version: string
  exports: { [entry: string]: string | { [condition: string]: string } }
}

const entries = ['node.ts', 'edge.ts', 'browser/browser.ts', 'relay/relay.ts', 'agents/detect-agent.ts']
entries.push(
  'webhook/verify-webhook.ts',
  'gateway/gateway.ts',
  'middleware/middleware.ts',
  'judge/signature.ts',
)

/** Rebuilds `packageDir`. Throws with the compiler's output when the types are wrong. */
export async function buildPackage(packageDir: string): Promise<void> {
  rmSync(packageDir, { recursive: true, force: true })
  await Promise.all([writeDeclarations(packageDir), writeModules(packageDir)])
  const manifest = JSON.parse(readFileSync(join(import.meta.dir, 'package.json'), 'utf8')) as Manifest
  if (userAgent !== `sightglass-sdk/${manifest.version}`)
    throw new Error('userAgent in wire/request.ts does not match the version in package.json')
  // `private` keeps the sources from being published.
  const { private: _isSource, exports, ...manifestFields } = manifest
  const published = {
    ...manifestFields,
    main: './node.js',
    types: './node.d.ts',
    exports: publishedExports(exports),
  }
  writeFileSync(join(packageDir, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
  for (const name of ['README.md', 'NOTICE'])
    copyFileSync(join(import.meta.dir, name), join(packageDir, name))
  copyFileSync(join(root, 'LICENSE'), join(packageDir, 'LICENSE'))
}

/** Not minified, so that people can debug and audit it on their servers. Bundlers minify it for pages. */
async function writeModules(packageDir: string): Promise<void> {
  await Bun.build({
    entrypoints: entries.map((entry) => join(import.meta.dir, entry)),
    root: import.meta.dir,
    outdir: packageDir,
    target: 'node',
    format: 'esm',
    splitting: true,
    naming: { chunk: 'shared/[hash].[ext]' },
  })
}

/** Writes declarations with the compiler, then deletes those that no entry point references. */
async function writeDeclarations(packageDir: string): Promise<void> {
  const tsc = join(root, 'node_modules/typescript', compiler.bin.tsc)
  const command = [process.execPath, tsc, '-p', 'sdk/tsconfig.json', '--outDir', packageDir]
  const child = Bun.spawn(command, { cwd: root, stdout: 'pipe' })
  const output = await new Response(child.stdout).text()
  if ((await child.exited) !== 0) throw new Error(output)
  const reached = new Set<string>()
  const pending = entries.map((entry) => join(packageDir, entry.replace(/\.ts$/, '.d.ts')))
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (reached.has(path)) continue
    reached.add(path)
    const text = readFileSync(path, 'utf8').replace(localImport, (_, prefix: string, name: string) => {
      pending.push(join(dirname(path ?? ''), `${name}.d.ts`))
      return `${prefix}'${name}.js'`
    })
    writeFileSync(path, text)
  }
  for (const path of outputs(packageDir, '.d.ts')) if (!reached.has(path)) rmSync(path)
}

const localImport = /((?:from |import\()\s*)['"](\.{1,2}\/[^'"]+?)\.(?:ts|js)['"]/g

/** Replaces each `.ts` target with its `.js` file and declarations. */
function publishedExports(exports: Manifest['exports']): object {
  const published = (path: string): unknown =>
    path.endsWith('.ts')
      ? { types: path.replace(/\.ts$/, '.d.ts'), default: path.replace(/\.ts$/, '.js') }
      : path
  return Object.fromEntries(
    Object.entries(exports).map(([entry, target]) => [
      entry,
      typeof target === 'string'
        ? published(target)
        : Object.fromEntries(Object.entries(target).map(([name, path]) => [name, published(path)])),
    ]),
  )
}

function outputs(packageDir: string, ending: string): string[] {
  return readdirSync(packageDir, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(packageDir, name))
}

if (import.meta.main) {
  const packageDir = join(root, 'dist/sdk')
  await buildPackage(packageDir)
  const files = outputs(packageDir, '').map((path) => statSync(path))
  const bytes = files.reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0)
  process.stdout.write(`dist/sdk: ${outputs(packageDir, '.js').length} modules, ${bytes} bytes unpacked\n`)
}
