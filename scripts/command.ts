/** Runs a command in the repository, its output shown or kept, with a deadline after which it and its children end. */
import { root } from './build.ts'

export interface CommandResult {
  code: number
  /** Both streams, in the order they came; empty when shown instead. */
  output: string
  timedOut: boolean
  durationMs: number
}

export interface CommandOptions {
  timeoutMs: number
  /** Keep the output instead of showing it. */
  quiet?: boolean
  env?: Record<string, string>
}

/** Time a command has to clean up (its children, temporary folders) before it is killed. */
const graceMs = 5_000

export async function command(args: string[], options: CommandOptions): Promise<CommandResult> {
  const startMs = performance.now()
  const kept = options.quiet === true
  const child = Bun.spawn(args, {
    cwd: root,
    env: { ...process.env, ...options.env },
    stdin: 'ignore',
    stdout: kept ? 'pipe' : 'inherit',
    stderr: kept ? 'pipe' : 'inherit',
  })
  let timedOut = false
  let killer: ReturnType<typeof setTimeout> | undefined
  const deadline = setTimeout(() => {
    timedOut = true
    child.kill('SIGTERM')
    killer = setTimeout(() => child.kill('SIGKILL'), graceMs)
  }, options.timeoutMs)
  const pieces: string[] = []
  await Promise.all([keep(child.stdout, pieces), keep(child.stderr, pieces), child.exited])
  clearTimeout(deadline)
  clearTimeout(killer)
  return {
    code: await child.exited,
    output: pieces.join(''),
    timedOut,
    durationMs: performance.now() - startMs,
  }
}

async function keep(
  stream: ReadableStream<Uint8Array<ArrayBuffer>> | undefined,
  pieces: string[],
): Promise<void> {
  if (stream === undefined) return
  const decoder = new TextDecoder()
  for await (const chunk of stream) pieces.push(decoder.decode(chunk, { stream: true }))
}
