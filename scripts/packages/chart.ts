/** Packs the Helm chart in chart/ with the version of the release. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { gzip, tar } from './archive.ts'

const folder = join(import.meta.dir, 'chart')

/** The files of the chart by path, with the version. Templates of YAML are no YAML, which their names here say. */
export function chartFiles(version: string): Map<string, string> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()
  return new Map(
    names.map((name) => {
      const text = readFileSync(join(folder, name), 'utf8')
      return [name.replace('.yaml.tpl', '.yaml'), text.replaceAll('VERSION', version)]
    }),
  )
}

/** As `helm package` packs it. */
export function chart(version: string): Uint8Array {
  return gzip(
    tar([...chartFiles(version)].map(([path, content]) => ({ path: `sightglass/${path}`, content }))),
  )
}
