/** `npm run check`: format, types, the tidy test and the measures, side by side. Exit code 1 when any fails. */
import { describeCheck, runChecks } from './checks.ts'
import { command } from './command.ts'

const tidy = command(
  [process.execPath, 'test', '--timeout=60000', '--only-failures', './tests/tidy.test.ts', './tests/tidy'],
  {
    timeoutMs: 120_000,
  },
).then(({ code, output, durationMs }) => [{ name: 'tidy', ok: code === 0, output, durationMs }])

const house = command([process.execPath, 'scripts/measure-house.ts'], { timeoutMs: 60_000 }).then(
  ({ code, output, durationMs }) => [{ name: 'measure-house', ok: code === 0, output, durationMs }],
)

const results = (await Promise.all([runChecks(), tidy, house])).flat()
for (const result of results) process.stdout.write(describeCheck(result))
process.exitCode = results.every((result) => result.ok) ? 0 : 1
