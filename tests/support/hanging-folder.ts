/**
 * A folder whose file system stopped answering, like a share whose server is gone: a FUSE mount that nobody serves.
 * Calls on it wait in the kernel until the process that mounted it ends.
 */
import { closeSync, existsSync, openSync } from 'node:fs'
import { dlopen, FFIType, ptr } from 'bun:ffi'
import { run } from './process.ts'

/** Why no such folder can be made here; null when one can. */
export function whyNoHangingFolder(): string | null {
  if (process.platform !== 'linux' || !existsSync('/dev/fuse')) return 'there is no /dev/fuse'
  return process.getuid?.() === 0 ? null : 'only root may mount'
}

/** From now on the folder hangs, until the returned function ends that. */
export async function hangFolder(path: string): Promise<() => Promise<void>> {
  const child = run([process.execPath, import.meta.path, path], { cwd: '/', env: {} })
  await child.line((line) => (line === 'mounted' ? line : null), 10_000)
  return async () => {
    child.signal('SIGKILL') // the kernel answers all waiting calls with an error
    await child.exited
    Bun.spawnSync(['umount', '-l', path])
  }
}

function mountUnserved(path: string): void {
  const { symbols } = dlopen('libc.so.6', {
    mount: { args: [FFIType.ptr, FFIType.ptr, FFIType.ptr, FFIType.u64, FFIType.ptr], returns: FFIType.i32 },
  })
  const text = (value: string) => ptr(Buffer.from(`${value}\0`))
  const file = openSync('/dev/fuse', 'r+')
  const options = `fd=${file},rootmode=40000,user_id=0,group_id=0`
  if (symbols.mount(text('hang'), text(path), text('fuse'), 0n, text(options)) !== 0) {
    closeSync(file)
    throw new Error('mount failed')
  }
  console.log('mounted')
  setInterval(() => {}, 60_000)
}

if (import.meta.main) mountUnserved(process.argv[2]!)
