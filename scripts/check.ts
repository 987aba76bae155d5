/** `npm run check`: format, types and the tidy test, side by side. Exit code 1 when any fails. */
import { describeCheck, runChecks } from './checks.ts'
import { command } from './command.ts'

const tidy = command(
  [process.execPath, 'test', '--timeout=60000', '--only-failures', './tests/tidy.test.ts', './tests/tidy'],
  {
    timeoutMs: 120_000,
  },
).then(({ code, output, durationMs }) => [{ name: 'tidy', ok: code === 0, output, durationMs }])

const results = (await Promise.all([runChecks(), tidy])).flat()
for (const result of results) process.stdout.write(describeCheck(result))
process.exitCode = results.every((result) => result.ok) ? 0 : 1
