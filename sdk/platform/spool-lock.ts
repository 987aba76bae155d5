/** Makes sure that one process at a time uses a spool: two would send and forget each other's events. */
import { closeSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs'

const heldHere = new Set<string>()

/** Takes the lock file or throws with the holder's process id. Returns the function that gives it back. */
export function lockSpool(path: string): () => void {
  if (heldHere.has(path)) throw new Error(`the spool ${path} is already open in this process`)
  const holder = readHolder(path)
  if (holder !== null) {
    if (isRunning(holder)) throw new Error(`the spool ${path} is in use by process ${holder.pid}`)
    unlinkSync(path)
  }
  const file = openSync(path, 'wx', 0o600)
  writeSync(file, `${process.pid} ${startOf(process.pid)}\n`)
  closeSync(file)
  heldHere.add(path)
  return () => {
    heldHere.delete(path)
    try {
      unlinkSync(path)
    } catch {
      // Somebody tidied the folder: then there is nothing to give back.
    }
  }
}

interface Holder {
  pid: number
  start: string
}

function readHolder(path: string): Holder | null {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return null
  }
  const [pid = '', start = ''] = text.trim().split(' ')
  return { pid: Number(pid), start }
}

function isRunning({ pid, start }: Holder): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false
  // Our own number: another thread of this process, or what a container had before it was started again.
  if (pid === process.pid) return start !== '' && start === startOf(pid)
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as { code?: string }).code === 'ESRCH') return false
  }
  return startOf(pid) === start
}

/**
 * When the process began, as Linux counts it, or '' elsewhere. In containers the same low process ids come back at
 * every start; this tells them apart.
 */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  } catch {
    return ''
  }
}
