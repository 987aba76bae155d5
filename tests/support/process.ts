/** A child process whose output is recorded, and which never outlives the tests. */

export interface Running {
  pid: number
  stdout(): string
  stderr(): string
  /** Resolves with the first line of standard output that `pick` accepts, or rejects when none comes. */
  line<T>(pick: (line: string) => T | null, timeoutMs: number): Promise<T>
  signal(name: NodeJS.Signals): void
  /** The exit code: 128 + n when signal n ended it. Resolves after all output was read. */
  exited: Promise<number>
}

export interface RunOptions {
  cwd: string
  env: Record<string, string>
  stdin?: string
  /** Runs the program with the runtime options that a user's would have. */
  asUsers?: boolean
}

/** Runtime options that make a process cheaper which ends within seconds. `npm test` sets them. */
export const shortProcess = {
  BUN_JSC_thresholdForJITAfterWarmUp: '10000',
  BUN_JSC_thresholdForJITSoon: '10000',
  MIMALLOC_PURGE_DELAY: '-1',
}
const matchingEntries = Object.entries(shortProcess).filter(([name, value]) => process.env[name] === value)

/** The command that runs a TypeScript program. Its stores start the threads of the test: bundled or from source. */
export function bunProgram(path: string): string[] {
  const bundled = process.env['SIGHTGLASS_TEST_THREADS']
  return [process.execPath, ...(bundled === undefined ? [] : ['--preload', bundled]), path]
}

const living = new Set<{ kill(signal: NodeJS.Signals): void }>()
process.once('exit', () => {
  for (const child of living) child.kill('SIGKILL')
})

/**
 * Starts `command` with the given environment, and with the options for short processes that this one has. The
 * developer's own settings never leak into a test.
 */
export function run(command: string[], options: RunOptions): Running {
  const child = Bun.spawn(command, {
    cwd: options.cwd,
    env: options.asUsers === true ? options.env : { ...Object.fromEntries(matchingEntries), ...options.env },
    stdin: options.stdin === undefined ? 'ignore' : new Blob([options.stdin]),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  living.add(child)
  const out = collect(child.stdout)
  const err = collect(child.stderr)
  const exited = Promise.all([child.exited, out.ended, err.ended]).then(([code]) => {
    living.delete(child)
    return code
  })
  return {
    pid: child.pid,
    stdout: out.text,
    stderr: err.text,
    line: (pick, timeoutMs) => firstLine({ out, err, exited, pick, timeoutMs, command }),
    signal: (name) => child.kill(name),
    exited,
  }
}

interface Collected {
  text(): string
  ended: Promise<void>
  onMore(listener: () => void): () => void
}

function collect(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Collected {
  let text = ''
  const listeners = new Set<() => void>()
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) {
      text += decoder.decode(chunk, { stream: true })
      for (const listener of listeners) listener()
    }
    text += decoder.decode()
  }
  const onMore = (listener: () => void): (() => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  return { text: () => text, ended: read(), onMore }
}

interface Wait<T> {
  out: Collected
  err: Collected
  exited: Promise<number>
  pick: (line: string) => T | null
  timeoutMs: number
  command: string[]
}

function firstLine<T>({ out, err, exited, pick, timeoutMs, command }: Wait<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let ended = false
    const look = (): void => {
      const lines = out.text().split('\n')
      if (!ended) lines.pop() // the last one may still be growing
      for (const line of lines) {
        const result = pick(line)
        if (result === null) continue
        finish()
        resolve(result)
        return
      }
    }
    const fail = (reason: string): void => {
      finish()
      reject(
        new Error(`${command.join(' ')}: ${reason}\n--- stdout\n${out.text()}\n--- stderr\n${err.text()}`),
      )
    }
    const timer = setTimeout(() => fail(`no such line within ${timeoutMs} ms`), timeoutMs)
    const unwatch = out.onMore(look)
    const finish = (): void => {
      clearTimeout(timer)
      unwatch()
    }
    void exited.then((code) => {
      ended = true
      look()
      fail(`exited with ${code} before the line came`) // does nothing when the line was found
    })
    look()
  })
}
