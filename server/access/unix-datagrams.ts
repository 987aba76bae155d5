/** Receives datagrams on a Unix socket, as nginx sends them to `syslog:server=unix:PATH`. Bun has no such sockets. */
import { dlopen, ptr, type Pointer } from 'bun:ffi'
import { chmodSync, existsSync, lstatSync, rmSync } from 'node:fs'
import { UsageError } from '../errors.ts'

/** C libraries of Linux. */
const libraries = ['libc.so.6', 'libc.musl-x86_64.so.1', 'libc.musl-aarch64.so.1']
const unixFamily = 1
const datagramNonBlocking = 2 | 2048
const datagramBytesMax = 64 * 1024
const pollMs = 20
const readsPerPoll = 1_000

type Call = (...args: (number | Pointer)[]) => number

function systemCalls(): { [name in 'socket' | 'bind' | 'recv' | 'close']: Call } {
  for (const file of libraries) {
    try {
      const { symbols } = dlopen(file, {
        socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
        bind: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
        recv: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' },
        close: { args: ['i32'], returns: 'i32' },
      })
      return symbols as unknown as ReturnType<typeof systemCalls>
    } catch {
      // Another C library.
    }
  }
  throw new UsageError('a Unix socket for syslog needs Linux; use udp:HOST:PORT')
}

/** `recv` returns the true length of a datagram of which it cut the end. */
const trueLength = 0x20

/** The socket file of a server before is replaced; any other file is an error. Every local user may send. */
export function receiveDatagrams(
  path: string,
  receive: (datagram: Buffer) => void,
  cut: () => void,
): { close(): void } {
  if (process.platform !== 'linux')
    throw new UsageError('a Unix socket for syslog needs Linux; use udp:HOST:PORT')
  if (existsSync(path)) {
    if (!lstatSync(path).isSocket()) throw new UsageError(`${path} exists and is not a socket`)
    rmSync(path)
  }
  const system = systemCalls()
  const socket = system.socket(unixFamily, datagramNonBlocking, 0)
  const address = Buffer.alloc(2 + Buffer.byteLength(path) + 1)
  address.writeUInt16LE(unixFamily)
  address.write(path, 2)
  if (socket < 0 || system.bind(socket, ptr(address), address.length) !== 0) {
    if (socket >= 0) system.close(socket)
    throw new UsageError(`cannot listen on ${path}; check that its folder exists and is writable`)
  }
  chmodSync(path, 0o666)
  const buffer = Buffer.alloc(datagramBytesMax)
  const timer = setInterval(() => {
    for (let count = 0; count < readsPerPoll; count++) {
      const bytes = Number(system.recv(socket, ptr(buffer), buffer.length, trueLength))
      if (bytes < 0) return
      if (bytes > buffer.length) cut()
      else receive(Buffer.from(buffer.subarray(0, bytes)))
    }
  }, pollMs)
  return {
    close() {
      clearInterval(timer)
      system.close(socket)
      rmSync(path, { force: true })
    },
  }
}
