/** `sightglass version`. */
import { version as current } from '../../system/version.ts'
import { command, type Noun } from '../command.ts'
import { printAnswer } from '../print.ts'

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
