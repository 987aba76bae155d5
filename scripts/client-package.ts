/** Builds the files below `/sdk/`: the client package as npm installs it, a module and a script for pages. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildPackage } from '../sdk/build.ts'
import { bytesOf, tar } from './packages/archive.ts'
import { precompress } from './precompress.ts'

const root = join(import.meta.dir, '..')

/** Writes the package, `browser.js`, `webmcp.js` and compressed copies. The same sources give the same bytes. */
export async function writeClientPackage(folder: string): Promise<void> {
  const packageDir = `${folder}-unpacked`
  mkdirSync(folder, { recursive: true })
  try {
    const [, browser, tag] = await Promise.all([
      buildPackage(packageDir),
      minified('sdk/browser/browser.ts', 'esm'),
      minified('sdk/browser/webmcp-tag.ts', 'iife'),
    ])
    writeFileSync(join(folder, 'browser.js'), browser)
    writeFileSync(join(folder, 'webmcp.js'), tag)
    writeFileSync(join(folder, 'sightglass-sdk.tgz'), packed(packageDir))
    await precompress(folder)
  } finally {
    rmSync(packageDir, { recursive: true, force: true })
  }
}

async function minified(entry: string, format: 'esm' | 'iife'): Promise<string> {
  const built = await Bun.build({ entrypoints: [join(root, entry)], target: 'browser', minify: true, format })
  const [output] = built.outputs
  if (output === undefined) throw new Error(`client package: ${built.logs.map(String).join('\n')}`)
  return output.text()
}

/** A tar file as from `npm pack`, below `package/`. Not `Bun.Archive`, because it records the time of the build. */
function packed(packageDir: string): Uint8Array {
  const files = readdirSync(packageDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
  const entries = files.map((path) => ({
    path: `package${path.slice(packageDir.length).replaceAll('\\', '/')}`,
    content: readFileSync(path),
  }))
  return Bun.gzipSync(Buffer.concat(tar(entries).map(bytesOf)), { level: 9 })
}
