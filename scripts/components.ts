/** What of others is inside the executable: every package that the bundles take something from, and Bun itself. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Component {
  name: string
  version: string
  license: string // SPDX, as the package says
  text: string // of its licence file, or what stands for it
}

/** Packages whose data is copied into our sources; no import leads to them. */
const copied = ['crawler-user-agents', '@zxcvbn-ts/language-common']

/** Sorted by name, so that the same sources give the same list. */
export async function components(
  root: string,
  entries: { server: string[]; web: string[] },
): Promise<Component[]> {
  const folders = new Set([
    ...(await packagesIn(root, entries.server, 'bun')),
    ...(await packagesIn(root, entries.web, 'browser')),
    ...copied.map((name) => join(root, 'node_modules', name)),
  ])
  const packages = [...folders].map(describe)
  return [...packages, bun(root)].sort((a, b) => (a.name < b.name ? -1 : 1))
}

async function packagesIn(root: string, entries: string[], target: 'bun' | 'browser'): Promise<string[]> {
  if (entries.length === 0) return []
  const entrypoints = entries.map((entry) => join(root, entry))
  const result = await Bun.build({ entrypoints, root, target, metafile: true, minify: true, throw: false })
  if (!result.success) throw new Error(`components: ${result.logs.map(String).join('\n')}`)
  const inputs = Object.keys(result.metafile?.inputs ?? {})
  const folders = inputs.flatMap((input) => {
    const match = /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(input)
    return match ? [join(root, match[0])] : []
  })
  return [...new Set(folders)]
}

interface Manifest {
  name: string
  version: string
  license?: string | { type: string }
}

function describe(folder: string): Component {
  const { name, version, license } = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  ) as Manifest
  const spdx = typeof license === 'string' ? license : (license?.type ?? 'unknown')
  const file = readdirSync(folder).find((fileName) => /^licen[cs]e(\.(md|txt))?$/i.test(fileName))
  const text =
    file === undefined
      ? `${name} is distributed under ${spdx}; its package carries no licence text.`
      : readFileSync(join(folder, file), 'utf8')
  return { name, version, license: spdx, text: text.trim() }
}

/** The runtime that the executable begins with; its own page names what it is made of in turn. */
function bun(root: string): Component {
  const page = join(root, 'node_modules/bun-types/docs/project/license.mdx')
  const text = existsSync(page)
    ? readFileSync(page, 'utf8').replace(/^---[\s\S]*?---\n/, '')
    : 'https://bun.com/docs/project/license'
  return { name: 'bun', version: Bun.version, license: 'MIT', text: text.trim() }
}

/** One text for people: a list, then every licence. */
export function licensesText(componentList: Component[]): string {
  const rule = '-'.repeat(72)
  const list = componentList.map(({ name, version, license }) => `${name} ${version} (${license})`)
  const texts = componentList.map(
    ({ name, version, license, text }) => `${rule}\n${name} ${version} (${license})\n${rule}\n\n${text}\n`,
  )
  return ['The executable holds work of others:', '', ...list, '', ...texts].join('\n')
}
