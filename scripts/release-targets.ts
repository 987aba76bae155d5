/**
 * The platforms of a release, the runtime that the build fetches for each from the npm registry, and the packages made
 * of each.
 */
import type { DebArchitecture } from './packages/deb.ts'
import type { ImageArchitecture } from './packages/image.ts'
import type { NpmPlatform } from './packages/npm.ts'
import type { RpmArchitecture } from './packages/rpm.ts'

export const targets = {
  'linux-x64': 'bun-linux-x64',
  'linux-x64-baseline': 'bun-linux-x64-baseline',
  'linux-arm64': 'bun-linux-arm64',
  'linux-x64-musl': 'bun-linux-x64-musl',
  'linux-arm64-musl': 'bun-linux-arm64-musl',
  'darwin-arm64': 'bun-darwin-arm64',
  'darwin-x64': 'bun-darwin-x64',
  'windows-x64': 'bun-windows-x64',
} as const satisfies { [name: string]: Bun.Build.CompileTarget }

export type TargetName = keyof typeof targets

interface PackagesOf {
  npm?: NpmPlatform
  system?: { deb: DebArchitecture; rpm: RpmArchitecture; image: ImageArchitecture }
  brew?: { system: 'macos' | 'linux'; cpu: 'arm' | 'intel' }
}

/** Packages must run on every machine of a distribution. Bun's build for x64 does: it is the one named baseline too. */
export const packagesOf: { readonly [N in TargetName]?: PackagesOf } = {
  'linux-x64': {
    npm: { os: 'linux', cpu: 'x64', libc: 'glibc' },
    system: { deb: 'amd64', rpm: 'x86_64', image: 'amd64' },
    brew: { system: 'linux', cpu: 'intel' },
  },
  'linux-arm64': {
    npm: { os: 'linux', cpu: 'arm64', libc: 'glibc' },
    system: { deb: 'arm64', rpm: 'aarch64', image: 'arm64' },
    brew: { system: 'linux', cpu: 'arm' },
  },
  'linux-x64-musl': { npm: { os: 'linux', cpu: 'x64', libc: 'musl' } },
  'linux-arm64-musl': { npm: { os: 'linux', cpu: 'arm64', libc: 'musl' } },
  'darwin-arm64': { npm: { os: 'darwin', cpu: 'arm64' }, brew: { system: 'macos', cpu: 'arm' } },
  'darwin-x64': { npm: { os: 'darwin', cpu: 'x64' }, brew: { system: 'macos', cpu: 'intel' } },
  'windows-x64': { npm: { os: 'win32', cpu: 'x64' } },
}

export const targetNames = Object.keys(targets) as TargetName[]

/** Throws for an unknown name. */
export function readTargets(list: string): TargetName[] {
  return list.split(',').map((name) => {
    const target = targetNames.find((targetName) => targetName === name)
    if (target === undefined) throw new Error(`"${name}" is not one of ${targetNames.join(', ')}`)
    return target
  })
}
