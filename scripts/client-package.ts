/** Builds the files below `/sdk/`: the client package as npm installs it, a module and a script for pages. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildPackage } from '../sdk/build.ts'
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
  const blocks = files.flatMap((path) => {
    const bytes = readFileSync(path)
    const name = `package${path.slice(packageDir.length).replaceAll('\\', '/')}`
    return [tarHeader(name, bytes.length), bytes, Buffer.alloc(-bytes.length & 511)]
  })
  return Bun.gzipSync(Buffer.concat([...blocks, Buffer.alloc(1_024)]), { level: 9 })
}

/** A ustar header (POSIX.1-1988): text fields, octal numbers, and a checksum. */
function tarHeader(name: string, size: number): Buffer {
  if (Buffer.byteLength(name) > 100) throw new Error(`client package: the path ${name} is too long for tar`)
  const header = Buffer.alloc(512)
  const octal = (value: number, at: number, width: number): void => {
    header.write(`${value.toString(8).padStart(width - 1, '0')}\0`, at)
  }
  header.write(name, 0)
  octal(0o644, 100, 8)
  octal(0, 108, 8) // owner
  octal(0, 116, 8) // group
  octal(size, 124, 12)
  octal(0, 136, 12) // modification time: the same sources give the same bytes
  header.write('        ', 148) // the checksum counts itself as blanks
  header.write('0', 156) // a regular file
  header.write('ustar\x0000', 257)
  octal(
    header.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  )
  return header
}
