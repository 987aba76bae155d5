/** `sightglass licenses`: third-party components in the executable and their licenses. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../errors.ts'
import { command, type Noun } from '../command.ts'
import { print } from '../print.ts'

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
