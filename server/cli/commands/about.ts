/** Contents of the executable: `sightglass version`, `sightglass licenses` and `sightglass openapi`. */
import { version as current } from '../../system/version.ts'
import { command, type Noun } from '../command.ts'
import { print, printAnswer } from '../print.ts'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../errors.ts'

export const version: Noun = {
  group: 'Program',
  commands: [
    command({
      name: 'version',
      summary: 'print the version',
      examples: ['sightglass version --json'],
      options: {},
      run({ values }) {
        const answer = { version: current, bun: Bun.version, platform: `${process.platform}-${process.arch}` }
        printAnswer(values, answer, () => `sightglass ${current}`)
        return 0
      },
    }),
  ],
}

export const licenses: Noun = {
  group: 'Program',
  commands: [
    command({
      name: 'licenses',
      summary: 'print the licenses of third-party components',
      examples: ['sightglass licenses --json'],
      options: {},
      run({ values }) {
        const folder = join(import.meta.dir, 'licenses')
        if (!Bun.isStandaloneExecutable || !existsSync(folder))
          throw new AppError('not_found', 'Only the built executable contains the licenses.', {
            hint: 'npm run build',
          })
        const name = values.json ? 'components.json' : 'licenses.txt'
        print(readFileSync(join(folder, name), 'utf8'))
        return 0
      },
    }),
  ],
}

export const openapi: Noun = {
  group: 'Program',
  commands: [
    command({
      name: 'openapi',
      summary: 'print the OpenAPI document of the public API',
      about: ['A running server serves the same document at /openapi.json, and as a page at /docs.'],
      examples: ['sightglass openapi > sightglass.json'],
      options: {},
      async run({ values }) {
        const { openApiDocument } = await import('../../docs/openapi.ts')
        print(JSON.stringify(openApiDocument(current), null, values.json ? undefined : 2))
        return 0
      },
    }),
  ],
}
