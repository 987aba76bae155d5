/**
 * `bun scripts/release.ts [--out dist/release] [--targets linux-x64,linux-arm64] [--key ed25519.pem]` builds a release:
 * an executable for each machine, compressed, packages, checksums, a bill of materials, the licences, and a signature
 * when a key is given. The same sources and key give the same bytes.
 */
import { createPrivateKey, createPublicKey, sign, type KeyObject } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { version } from '../package.json'
import { compile, prepareAssets, root } from './build.ts'
import type { Component } from './components.ts'
import { digest, pack } from './packages/archive.ts'
import { armour, openPgpKey, type OpenPgpKey } from './packages/openpgp.ts'
import {
  packageKinds,
  packageMaker,
  readPackageKinds,
  type Built,
  type PackageKind,
} from './packages/packages.ts'
import { packageInfo } from './packages/system-files.ts'
import { readTargets, targetNames, targets, type TargetName } from './release-targets.ts'
import { cycloneDx } from './sbom.ts'

export interface ReleaseWanted {
  out: string // an earlier release in it goes; anything else is refused
  targets: TargetName[]
  packages: readonly PackageKind[]
  libraryFolder: string | null // with Debian's packages libc6, for images; null: apt-get downloads them
  url: string | null // where the files will be, for the formula
  keyFile: string | null // PEM, Ed25519
  say(line: string): void
}

/** Returns the targets whose runtime could not be fetched; everything else is in `out`. */
export async function release(options: ReleaseWanted): Promise<TargetName[]> {
  const { out, targets: requestedTargets, packages: kinds, keyFile, say } = options
  const key = keyFile === null ? null : createPrivateKey(readFileSync(keyFile, 'utf8'))
  const openPgp =
    key === null
      ? null
      : openPgpKey(key, `Sightglass releases ${packageInfo.maintainer.replace(/^[^<]*/, '')}`)
  clear(out)
  const work = join(out, '.building')
  mkdirSync(work, { recursive: true })
  const missing: TargetName[] = []
  try {
    const assets = await prepareAssets(work)
    const { libraryFolder, url } = options
    const packages = packageMaker({
      out,
      version,
      kinds,
      licenses: assets.licenses,
      libraryFolder,
      url,
      key: openPgp,
    })
    for (const name of requestedTargets) {
      try {
        await packages.add(await buildFor(name, work, assets.embedded, out))
        say(`built ${name}`)
      } catch (error) {
        missing.push(name)
        say(`left out ${name}: ${String(error)}`)
      }
    }
    const foreign = packages.finish()
    const { components } = JSON.parse(readFileSync(join(assets.licenses, 'components.json'), 'utf8')) as {
      components: Pick<Component, 'name' | 'version' | 'license'>[]
    }
    writeFileSync(join(out, `sightglass-${version}.cdx.json`), cycloneDx(version, components, foreign))
    copyFileSync(join(assets.licenses, 'licenses.txt'), join(out, 'THIRD-PARTY-LICENSES.txt'))
    copyFileSync(join(root, 'LICENSE'), join(out, 'LICENSE'))
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  writeSums(out, key, openPgp)
  return missing
}

/** Takes an earlier release away, and nothing else: a wrong --out must not cost somebody a folder. */
function clear(out: string): void {
  if (!existsSync(out)) return
  const names = readdirSync(out)
  const isOurs = names.includes('SHA256SUMS') || names.includes('.building')
  if (names.length > 0 && !isOurs)
    throw new Error(`${out} is not empty and holds no release: name another folder, or empty it`)
  rmSync(out, { recursive: true })
}

/** Compressed only: stripping takes the program out of the executable. */
async function buildFor(target: TargetName, work: string, assets: string[], out: string): Promise<Built> {
  const suffix = target.startsWith('windows') ? '.exe' : ''
  const folder = join(work, target)
  mkdirSync(folder)
  const outfile = join(folder, `sightglass${suffix}`)
  await compile(outfile, assets, targets[target])
  const executable = pack(readFileSync(outfile))
  const file = `sightglass-${version}-${target}${suffix}.gz`
  writeFileSync(join(out, file), executable.gzip)
  rmSync(folder, { recursive: true })
  return { target, executable, file }
}

/** `sha256sum --check SHA256SUMS` proves the files; the signature is over the bytes of SHA256SUMS. */
function writeSums(out: string, key: KeyObject | null, openPgp: OpenPgpKey | null): void {
  const lines = readdirSync(out, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(out, join(entry.parentPath, entry.name)))
    .sort()
    .map((name) => `${digest('sha256', readFileSync(join(out, name)))}  ${name}\n`)
  const sums = Buffer.from(lines.join(''))
  writeFileSync(join(out, 'SHA256SUMS'), sums)
  if (key === null || openPgp === null) return
  writeFileSync(join(out, 'SHA256SUMS.sig'), sign(null, sums, key))
  writeFileSync(join(out, 'SHA256SUMS.asc'), armour('SIGNATURE', openPgp.sign(sums)))
  writeFileSync(join(out, 'sightglass-release.asc'), openPgp.publicKey)
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'pem' })
  writeFileSync(join(out, 'sightglass-release.pub'), publicKey)
  writeFileSync(join(out, 'VERIFY.txt'), verifyText(openPgp.fingerprint))
}

const verifyText = (
  fingerprint: string,
): string => `Compare sightglass-release.pub with the one you know from elsewhere; then, in this folder:

  openssl pkeyutl -verify -pubin -inkey sightglass-release.pub -rawin -in SHA256SUMS -sigfile SHA256SUMS.sig
  sha256sum --check SHA256SUMS
  gunzip --keep sightglass-*-linux-x64.gz && chmod +x sightglass-*-linux-x64

Or with gpg. The key is the same one in OpenPGP's form, with this fingerprint:

  ${fingerprint}

  gpg --import sightglass-release.asc
  gpg --verify SHA256SUMS.asc SHA256SUMS && sha256sum --check SHA256SUMS

The packages have signatures of their own:

  sudo rpmkeys --import sightglass-release.asc && rpmkeys --checksig *.rpm
  debsig-verify sightglass_*.deb, with the policy from the operations guide

Nothing of this needs a network. On a machine with Sightglass, this verifies, backs up, installs and restarts:

  sudo sightglass upgrade sightglass-*-linux-x64.gz
`

const help = `Builds a release: compressed executables, packages, their sums, the bill of materials and the licences.

  bun scripts/release.ts [--out FOLDER] [--targets NAMES] [--packages KINDS] [--key FILE]

  --out FOLDER     where it goes (default dist/release); an earlier release in it goes
  --targets NAMES  comma-separated, all unless given: ${targetNames.join(', ')}
  --packages KINDS comma-separated, all unless given: ${packageKinds.join(', ')}; "none" for no package
  --libc FOLDER    Debian's packages libc6 for the images, by default downloaded with apt-get
  --url URL        where the files will be, for the formula; by default it takes those beside it
  --key FILE       an Ed25519 private key in PEM that signs the sums, the .deb and the .rpm; also SIGHTGLASS_RELEASE_KEY
`

function kindsOf(list = packageKinds.join(',')): PackageKind[] {
  return list === 'none' ? [] : readPackageKinds(list)
}

if (import.meta.main) {
  try {
    const { values } = parseArgs({
      options: {
        out: { type: 'string' },
        targets: { type: 'string' },
        key: { type: 'string' },
        packages: { type: 'string' },
        libc: { type: 'string' },
        url: { type: 'string' },
        help: { type: 'boolean' },
      },
    })
    if (values.help) {
      process.stdout.write(help)
      process.exit(0)
    }
    const keyFile = values.key ?? process.env['SIGHTGLASS_RELEASE_KEY'] ?? null
    const missing = await release({
      out: resolve(values.out ?? join(root, 'dist', 'release')),
      targets: values.targets === undefined ? targetNames : readTargets(values.targets),
      packages: kindsOf(values.packages),
      libraryFolder: values.libc === undefined ? null : resolve(values.libc),
      url: values.url ?? null,
      keyFile,
      say: (line) => void process.stdout.write(`${line}\n`),
    })
    if (keyFile === null) process.stdout.write('not signed: no --key was given\n')
    process.exit(missing.length === 0 ? 0 : 1)
  } catch (error) {
    process.stderr.write(`release: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(1)
  }
}
