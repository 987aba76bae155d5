/** Compresses every file of the bundled dashboard at build time, and lists the files in `manifest.json`. */
import { readdirSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib'

/** One served file. A compressed copy is beside it, named by its encoding: `/assets/main-x.js.br`. */
export interface ManifestEntry {
  type: string
  /** Hash of the uncompressed bytes. Hash and encoding make the ETag. */
  hash: string
  /** Content codings with a smaller copy, best first. */
  encodings: Encoding[]
  /** Of `/index.html`: the paths for which it is returned. */
  paths?: DashboardPaths
}

/** `pages` own the paths below them, `exact` do not. */
export interface DashboardPaths {
  pages: string[]
  exact: string[]
}

/** From URL path, such as `/index.html`, to its file. */
export type Manifest = Record<string, ManifestEntry>

const compressors = {
  br: (bytes: Uint8Array) =>
    brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } }),
  zstd: (bytes: Uint8Array) =>
    zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 19 } }),
  gzip: (bytes: Uint8Array) => gzipSync(bytes, { level: 9 }),
} as const

export type Encoding = keyof typeof compressors

/** A copy that saves less than 5 % is not worth its bytes in the executable. */
const worthRatio = 0.95

export async function precompress(dir: string, paths?: DashboardPaths): Promise<Manifest> {
  const manifest: Manifest = {}
  const names = readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort() // the same sources build the same executable
  for (const file of names) {
    const bytes = await readFile(file)
    const encodings: Encoding[] = []
    for (const encoding of ['br', 'zstd', 'gzip'] as const) {
      const smaller = compressors[encoding](bytes)
      if (smaller.length > bytes.length * worthRatio) continue
      await writeFile(`${file}.${encoding}`, smaller)
      encodings.push(encoding)
    }
    const path = file.slice(dir.length).replaceAll('\\', '/')
    const hash = new Bun.CryptoHasher('sha256').update(bytes).digest('base64url').slice(0, 22)
    manifest[path] = { type: Bun.file(file).type, hash, encodings }
    if (paths && path === '/index.html') manifest[path].paths = paths
  }
  await writeFile(join(dir, 'manifest.json'), JSON.stringify(manifest))
  return manifest
}
