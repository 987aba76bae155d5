/** Locks a spool for one process, because two would send and delete each other's events. */
import { closeSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs'

const heldHere = new Set<string>()

/** Locks the spool or throws with the process id of the holder. Returns the function that unlocks it. */
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
      // The file was deleted by somebody else.
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
  // Our own process id: another thread of this process, or an earlier run of the container.
  if (pid === process.pid) return start !== '' && start === startOf(pid)
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as { code?: string }).code === 'ESRCH') return false
  }
  return startOf(pid) === start
}

/**
 * The start time of the process on Linux, '' elsewhere. It distinguishes runs of a container, which reuse low process
 * ids.
 */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  } catch {
    return ''
  }
}
