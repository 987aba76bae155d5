/** `npm start`: builds the executable if sources are newer, then replaces this process with it and its arguments. */
import { buildIfStale, executable } from './build.ts'

try {
  await buildIfStale()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}

const args = process.argv.slice(2)

if (process.execve !== undefined && process.platform !== 'win32') {
  // The process becomes the executable, so signals and the exit code need no forwarding.
  process.execve(executable, [executable, ...args], { ...process.env } as Record<string, string>)
}

const child = Bun.spawn([executable, ...args], { stdio: ['inherit', 'inherit', 'inherit'] })
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
process.exit(await child.exited)
