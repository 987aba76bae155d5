/** Releases for tests of upgrades: small executables that start a real one, and a real one with a migration more. */
import { createHash, sign, type KeyObject } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, workerEntries } from '../../scripts/build.ts'
import { binaryPath } from './binary.ts'
import { madeOnce } from './made-once.ts'

/**
 * An executable of another version, in front of `binary`. `serve` replaces how its server starts, which has the name of
 * this executable.
 */
export function script(
  version: string,
  serve = `exec -a "$0" ${binaryPath} "$@"`,
  binary = binaryPath,
): string {
  const versionLine = `[ "$1" = version ] && exec echo '{"version":"${version}"}'`
  return ['#!/bin/bash', versionLine, `[ "$1" != serve ] && exec ${binary} "$@"`, serve, ''].join('\n')
}

/** A release folder with one file; returns its path. Not signed without a key. */
export function writeRelease(folder: string, version: string, text: string, key: KeyObject | null): string {
  const name = `sightglass-${version}-linux-x64.gz`
  mkdirSync(folder, { recursive: true })
  const bytes = Bun.gzipSync(Buffer.from(text))
  writeFileSync(`${folder}/${name}`, bytes)
  const sums = Buffer.from(`${createHash('sha256').update(bytes).digest('hex')}  ${name}\n`)
  writeFileSync(`${folder}/SHA256SUMS`, sums)
  if (key !== null) writeFileSync(`${folder}/SHA256SUMS.sig`, sign(null, sums, key))
  return `${folder}/${name}`
}

export const nextVersion = '99.0.0'

/**
 * The executable of a release with one more migration, built once in a run. NEXT_OLDER_NODES says what nodes without
 * it may do.
 */
export async function nextRelease(): Promise<string> {
  const name = 'sightglass-next'
  return join(await madeOnce('next-release', (folder) => buildNextRelease(join(folder, name))), name)
}

async function buildNextRelease(outfile: string): Promise<void> {
  const sql = 'ALTER TABLE org ADD COLUMN next bigint'
  const olderNodes = "process.env['NEXT_OLDER_NODES'] as 'write'"
  const added = (version: number): string =>
    `\n{ name: '${String(version).padStart(4, '0')}_next', sql: '${sql}', olderNodes: ${olderNodes} },\n])\n`
  const { success, logs } = await Bun.build({
    entrypoints: ['server/main.ts', ...workerEntries].map((path) => join(root, path)),
    root,
    target: 'bun',
    format: 'esm',
    throw: false,
    define: { 'process.env.NODE_ENV': '"production"' },
    compile: {
      outfile,
      assets: [join(root, 'dist/web'), join(root, 'dist/client-package')],
      autoloadDotenv: false,
      autoloadBunfig: false,
    },
    plugins: [
      {
        name: 'next release',
        setup(build) {
          build.onLoad({ filter: /db\/postgres\/migrations\/migrations\.ts$/ }, ({ path }) => {
            const text = readFileSync(path, 'utf8')
            const count = text.match(/\{ name: '\d{4}_/g)!.length
            return { contents: text.replace(/\n\]\)\n/, added(count + 1)), loader: 'ts' }
          })
          build.onLoad({ filter: /package\.json$/ }, ({ path }) => {
            const contents = readFileSync(path, 'utf8')
            return path === join(root, 'package.json')
              ? {
                  contents: contents.replace(/"version": "[^"]*"/, `"version": "${nextVersion}"`),
                  loader: 'json',
                }
              : { contents, loader: 'json' }
          })
        },
      },
    ],
  })
  if (!success) throw new Error(logs.map(String).join('\n'))
}
