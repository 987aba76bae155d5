/** Runs a command in the repository and collects its output. At the deadline the command and its children end. */
import { root } from './build.ts'
import { watchProcess } from './process-time.ts'

export interface CommandResult {
  code: number
  /** Both streams, in order of arrival. */
  output: string
  timedOut: boolean
  durationMs: number
  /** Processor time of the command and of all its descendants. */
  cpuMs: number
}

export interface CommandOptions {
  timeoutMs: number
  env?: Record<string, string>
}

/** Time a command has to clean up (its children, temporary folders) before it is killed. */
const graceMs = 5_000

export async function command(args: string[], options: CommandOptions): Promise<CommandResult> {
  const startMs = performance.now()
  const child = Bun.spawn(args, {
    cwd: root,
    env: { ...process.env, ...options.env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const totalMs = watchProcess(child.pid)
  let timedOut = false
  let killer: ReturnType<typeof setTimeout> | undefined
  const deadline = setTimeout(() => {
    timedOut = true
    child.kill('SIGTERM')
    killer = setTimeout(() => child.kill('SIGKILL'), graceMs)
  }, options.timeoutMs)
  const pieces: string[] = []
  const collected = Promise.all([collect(child.stdout, pieces), collect(child.stderr, pieces)])
  const code = await child.exited
  const cpuMs = totalMs(Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1_000)
  clearTimeout(deadline)
  clearTimeout(killer)
  // A grandchild that outlived a killed command may keep the streams open.
  let late: ReturnType<typeof setTimeout> | undefined
  await Promise.race([collected, new Promise((resolve) => (late = setTimeout(resolve, graceMs)))])
  clearTimeout(late) // it would keep this process alive
  return {
    code,
    output: pieces.join(''),
    timedOut,
    durationMs: performance.now() - startMs,
    cpuMs,
  }
}

async function collect(stream: ReadableStream<Uint8Array<ArrayBuffer>>, pieces: string[]): Promise<void> {
  const decoder = new TextDecoder()
  for await (const chunk of stream) pieces.push(decoder.decode(chunk, { stream: true }))
}
