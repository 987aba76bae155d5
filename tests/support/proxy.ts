/** An HTTP proxy in its own process: connects every name to this machine, and reports each request. */
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { run } from './process.ts'
import { report, reportFile } from './report-file.ts'

export interface ProxyProcess extends AsyncDisposable {
  port: number
  /** The head of every request so far, unchanged. */
  heads(): string[]
}

/** Connects to `httpPort` or `httpsPort`, whatever the name; `credentials` are the required `user:password`. */
export async function startProxy(to: {
  httpPort: number
  httpsPort: number
  credentials?: string
}): Promise<ProxyProcess> {
  const reports = reportFile()
  const command = [process.execPath, join(import.meta.dir, 'proxy.ts'), reports.path]
  const words = [String(to.httpPort), String(to.httpsPort), to.credentials ?? '']
  const child = run([...command, ...words], { cwd: import.meta.dir, env: { PATH: process.env.PATH ?? '' } })
  const port = Number(await child.line((line) => /^listening on (\d+)$/.exec(line)?.[1] ?? null, 10_000))
  return {
    port,
    heads: () => reports.lines().map((line) => JSON.parse(line) as string),
    async [Symbol.asyncDispose]() {
      child.signal('SIGKILL')
      await child.exited
      reports.remove()
    },
  }
}

interface Told {
  head: string
  body: Buffer
}

/** Behavior by the first label of the requested name; every other name is connected to. */
const behaviours: { [word: string]: (socket: Socket) => void } = {
  refused: (socket) => void socket.end('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n'),
  hang: () => {},
  closed: (socket) => void socket.end(),
  /** A tunnel that leads nowhere. */
  cut: (socket) => void socket.end('HTTP/1.1 200 Connection established\r\n\r\n'),
}

function answer(socket: Socket, { head, body }: Told): void {
  const [, , , httpPort, httpsPort, credentials] = process.argv
  const [method = '', target = ''] = head.split(' ')
  const proxyCredentials = /^proxy-authorization: basic (\S+)$/im.exec(head)?.[1] ?? ''
  if (credentials && Buffer.from(proxyCredentials, 'base64').toString() !== credentials)
    return void socket.end('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n')
  const isTunnel = method === 'CONNECT'
  const host = isTunnel ? target : new URL(target).host
  const behaviour = behaviours[host.split('.')[0] ?? '']
  if (behaviour) return behaviour(socket)
  const upstream = connect({ host: '127.0.0.1', port: Number(isTunnel ? httpsPort : httpPort) }, () => {
    if (isTunnel) socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
    else upstream.write(`${head.replace(target, new URL(target).pathname)}\r\n\r\n`)
    upstream.write(body)
    socket.pipe(upstream).pipe(socket)
  })
  upstream.on('error', () => socket.destroy())
}

function serve(socket: Socket): void {
  let bytes = Buffer.alloc(0)
  socket.on('error', () => socket.destroy())
  const read = (data: Buffer): void => {
    bytes = Buffer.concat([bytes, data])
    const end = bytes.indexOf('\r\n\r\n')
    if (end === -1) return
    socket.off('data', read)
    const head = bytes.subarray(0, end).toString('latin1')
    report(process.argv[2]!, head)
    answer(socket, { head, body: bytes.subarray(end + 4) })
  }
  socket.on('data', read)
}

if (import.meta.main) {
  const server = createServer(serve)
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    if (address !== null && typeof address === 'object')
      process.stdout.write(`listening on ${address.port}\n`)
  })
}
