/**
 * Writes the packages for npm: `sightglass` starts the executable of the platform's package, which npm selects by
 * system, CPU and C library.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzip, tar, type Entry, type Packed } from './archive.ts'
import { packageInfo } from './system-files.ts'

export interface NpmPlatform {
  os: 'linux' | 'darwin' | 'win32'
  cpu: 'x64' | 'arm64'
  libc?: 'glibc' | 'musl'
}

const scope = '@sightglass'

const platformName = ({ os, cpu, libc }: NpmPlatform): string =>
  `${scope}/${os}-${cpu}${libc === 'musl' ? '-musl' : ''}`

const fileStem = (packageName: string): string => packageName.replace('@', '').replace('/', '-')

/** The name of a package's file, as `npm pack` names it. */
export const npmFile = (platform: NpmPlatform | null, version: string): string =>
  `npm/${fileStem(platform === null ? packageInfo.name : platformName(platform))}-${version}.tgz`

export interface NpmTexts {
  version: string
  license: string
}

export function platformPackage(
  { version, license }: NpmTexts,
  platform: NpmPlatform,
  executable: Packed,
): Uint8Array {
  const { os, cpu, libc } = platform
  const file = os === 'win32' ? 'bin/sightglass.exe' : 'bin/sightglass'
  const fields = {
    ...common(platformName(platform), version),
    description: `The executable of ${packageInfo.name} for ${os} ${cpu}${libc === undefined ? '' : `, ${libc}`}`,
    os: [os],
    cpu: [cpu],
    ...(libc === undefined ? {} : { libc: [libc] }),
    files: [file],
    preferUnplugged: true, // Yarn keeps executables outside of its archives
  }
  return tarball(fields, [
    { path: 'LICENSE', content: license },
    { path: file, content: executable, mode: 0o755 },
  ])
}

/** Depends on exactly the same version of each platform's package. */
export function mainPackage({ version, license }: NpmTexts, platforms: NpmPlatform[]): Uint8Array {
  const fields = {
    ...common(packageInfo.name, version),
    description: packageInfo.summary,
    keywords: ['agents', 'crawlers', 'webmcp', 'traces', 'audit'],
    bin: { sightglass: 'bin/sightglass.cjs' },
    files: ['bin/sightglass.cjs'],
    engines: { node: '>=18' },
    optionalDependencies: Object.fromEntries(platforms.map((platform) => [platformName(platform), version])),
  }
  return tarball(fields, [
    { path: 'LICENSE', content: license },
    { path: 'README.md', content: readme },
    {
      path: 'bin/sightglass.cjs',
      content: readFileSync(join(import.meta.dir, 'npm-launcher.cjs')),
      mode: 0o755,
    },
  ])
}

const common = (name: string, version: string) => ({ name, version, license: packageInfo.license })

function tarball(fields: object, files: Entry[]): Uint8Array {
  const entries = [{ path: 'package.json', content: `${JSON.stringify(fields, null, 2)}\n` }, ...files]
  return gzip(tar(entries.map((entry) => ({ ...entry, path: `package/${entry.path}` }))))
}

const readme = `# Sightglass

${packageInfo.description.join('\n')}

    npx sightglass serve --data-dir ./sightglass-data

The server prints its address and a link that creates the first owner. \`npx sightglass help\` lists all commands.
Backends report events with the package that the server has at \`/sdk/sightglass-sdk.tgz\`.
`
