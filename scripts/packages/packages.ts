/** Makes the packages of a release: for each target as soon as its executable is built, then those of all targets. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from '../build.ts'
import { packagesOf, type TargetName } from '../release-targets.ts'
import { digest, type Packed } from './archive.ts'
import { chart } from './chart.ts'
import { deb } from './deb.ts'
import { formula } from './formula.ts'
import { image, readLibrary, type ImageArchitecture } from './image.ts'
import { mainPackage, npmFile, platformPackage, type NpmPlatform } from './npm.ts'
import type { OpenPgpKey } from './openpgp.ts'
import { packageVersion, type PackageTexts } from './system-files.ts'
import { rpm, rpmRelease } from './rpm.ts'

export const packageKinds = ['deb', 'rpm', 'image', 'npm', 'helm', 'brew'] as const

export type PackageKind = (typeof packageKinds)[number]

/** Throws for an unknown kind. */
export function readPackageKinds(list: string): PackageKind[] {
  return list.split(',').map((name) => {
    const kind = packageKinds.find((packageKind) => packageKind === name)
    if (kind === undefined) throw new Error(`"${name}" is not one of ${packageKinds.join(', ')}`)
    return kind
  })
}

export interface PackageOptions {
  out: string
  version: string
  kinds: readonly PackageKind[]
  /** Folder with the licences of all components. */
  licenses: string
  /** Folder with Debian's packages libc6 for the images; null: apt-get downloads them. */
  libraryFolder: string | null
  /** Where the files of the release will be, for the formula. */
  url: string | null
  /** Signs the packages for dpkg and rpm. */
  key: OpenPgpKey | null
}

export interface Built {
  target: TargetName
  executable: Packed
  file: string // its name in the release
}

/** Parts of an image that are not ours, for the bill of materials. */
export interface Foreign {
  architecture: ImageArchitecture
  libcVersion: string
}

export interface PackageMaker {
  add(built: Built): Promise<void>
  finish(): Foreign[]
}

export function packageMaker(options: PackageOptions): PackageMaker {
  const { out, version, kinds, licenses, libraryFolder, url, key } = options
  let texts: PackageTexts | null = null // from the first target with packages
  const platforms: NpmPlatform[] = []
  const taps: Parameters<typeof formula>[2] = []
  const foreign: Foreign[] = []
  const write = (name: string, bytes: Uint8Array | string): void => {
    mkdirSync(dirname(join(out, name)), { recursive: true })
    writeFileSync(join(out, name), bytes)
  }
  const wants = (kind: PackageKind): boolean => kinds.includes(kind)
  return {
    async add({ target, executable, file }) {
      const { npm, system, brew } = packagesOf[target] ?? {}
      if (brew !== undefined && wants('brew'))
        taps.push({ ...brew, name: file, sha256: digest('sha256', executable.gzip) })
      if (!(['deb', 'rpm', 'image', 'npm'] as const).some(wants)) return
      texts ??= await packageTexts(licenses)
      const contents = { version, executable, texts, key }
      if (npm !== undefined && wants('npm')) {
        write(npmFile(npm, version), platformPackage({ version, license: texts.license }, npm, executable))
        platforms.push(npm)
      }
      if (system === undefined) return
      const plain = packageVersion(version)
      if (wants('deb')) write(`sightglass_${plain}_${system.deb}.deb`, deb(contents, system.deb))
      if (wants('rpm'))
        write(`sightglass-${plain}-${rpmRelease}.${system.rpm}.rpm`, rpm(contents, system.rpm))
      if (wants('image')) {
        const library = await readLibrary(system.image, libraryFolder)
        write(
          `sightglass-${version}-image-${system.image}.tar`,
          image({ version, executable, library, texts, architecture: system.image }),
        )
        foreign.push({ architecture: system.image, libcVersion: library.version })
      }
    },
    finish() {
      if (texts !== null && platforms.length > 0)
        write(npmFile(null, version), mainPackage({ version, license: texts.license }, platforms))
      if (taps.length > 0) write('sightglass.rb', formula(version, url, taps))
      if (wants('helm')) write(`sightglass-${version}-helm.tgz`, chart(version))
      return foreign
    },
  }
}

/** The manual and the completions, as the executable prints them. */
async function packageTexts(licenses: string): Promise<PackageTexts> {
  const print = async (...args: string[]): Promise<string> => {
    const child = Bun.spawn([process.execPath, 'server/main.ts', ...args], { cwd: root, stdout: 'pipe' })
    const text = await new Response(child.stdout).text()
    if ((await child.exited) !== 0) throw new Error(`sightglass ${args.join(' ')} failed`)
    return text
  }
  const manual = await print('man')
  const bash = await print('completions', 'bash')
  const zsh = await print('completions', 'zsh')
  const fish = await print('completions', 'fish')
  return {
    manual,
    completions: { bash, zsh, fish },
    license: readFileSync(join(root, 'LICENSE'), 'utf8'),
    changelog: readFileSync(join(root, 'CHANGELOG.md'), 'utf8'),
    thirdParty: readFileSync(join(licenses, 'licenses.txt'), 'utf8'),
  }
}
