/** Runs command lines from source in one process, for tests of many: `bun run-lines.ts '[["help"], …]'`. */
import { print } from '../../server/cli/print.ts'
import { run } from '../../server/cli/run.ts'

/** Ends the output of each line, followed by its exit code. */
const end = '\u0004'

for (const line of JSON.parse(process.argv[2] ?? '[]') as string[][]) {
  const code = await run(line)
  print(`${end}${code}`)
}
