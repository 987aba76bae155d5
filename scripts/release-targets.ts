/** The platforms of a release, and the runtime that the build fetches for each from the npm registry. */

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

export const targetNames = Object.keys(targets) as TargetName[]

/** Throws for an unknown name. */
export function readTargets(list: string): TargetName[] {
  return list.split(',').map((name) => {
    const found = targetNames.find((each) => each === name)
    if (found === undefined) throw new Error(`"${name}" is not one of ${targetNames.join(', ')}`)
    return found
  })
}
