/** `sightglass openapi`: the OpenAPI document of the public API. */
import { version } from '../../system/version.ts'
import { command, type Noun } from '../command.ts'
import { print } from '../print.ts'

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
        print(JSON.stringify(openApiDocument(version), null, values.json ? undefined : 2))
        return 0
      },
    }),
  ],
}
