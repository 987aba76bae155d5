/** Compression at build time: every copy decompresses to the original, and only smaller copies are written. */
import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib'
import { tempDir } from '../tests/support/temp-dir.ts'
import { precompress } from './precompress.ts'

const inflate = { br: brotliDecompressSync, zstd: zstdDecompressSync, gzip: gunzipSync }

test('text gets three copies that decompress to it, named by their encoding', async () => {
  using dir = tempDir()
  mkdirSync(dir.join('assets'))
  const text = 'const answer = 42;\n'.repeat(200)
  writeFileSync(dir.join('assets/main-abc.js'), text)
  const manifest = await precompress(dir.path)
  const entry = manifest['/assets/main-abc.js']
  expect(entry?.type).toStartWith('text/javascript')
  expect(entry?.encodings).toEqual(['br', 'zstd', 'gzip'])
  for (const encoding of entry?.encodings ?? []) {
    const copy = readFileSync(dir.join(`assets/main-abc.js.${encoding}`))
    expect(inflate[encoding](copy).toString()).toBe(text)
  }
  expect(JSON.parse(readFileSync(dir.join('manifest.json'), 'utf8'))).toEqual(manifest)
})

test('files that do not shrink are served uncompressed', async () => {
  using dir = tempDir()
  writeFileSync(dir.join('dot.png'), crypto.getRandomValues(new Uint8Array(1_000)))
  const manifest = await precompress(dir.path)
  expect(manifest['/dot.png']?.encodings).toEqual([])
  expect(existsSync(dir.join('dot.png.br'))).toBe(false)
})

test('the hash depends only on the content', async () => {
  using dir = tempDir()
  writeFileSync(dir.join('index.html'), '<p>one')
  const first = (await precompress(dir.path))['/index.html']
  using again = tempDir()
  writeFileSync(again.join('index.html'), '<p>one')
  expect((await precompress(again.path))['/index.html']).toEqual(first)
  using otherFolder = tempDir()
  writeFileSync(otherFolder.join('index.html'), '<p>two')
  expect((await precompress(otherFolder.path))['/index.html']?.hash).not.toBe(first?.hash)
})
