/** Connections of impolite clients: send part of a request, read nothing, send a byte now and then. */

export interface Stalled {
  /** The received bytes. */
  text(): string
  closed(): boolean
  /** Sends more, as far as it is accepted. */
  send(bytes: string | Uint8Array): void
  end(): void
}

/** Sends the head of a request and part of its body. With `reads` false no response is read. */
export async function openStalled(
  url: string,
  head: string[],
  body: string | Uint8Array = '',
  { reads = true } = {},
): Promise<Stalled> {
  let text = ''
  let isClosed = false
  let unsent: Uint8Array = Buffer.from(`${head.join('\r\n')}\r\nhost: localhost\r\n\r\n`)
  const flush = (socket: Bun.Socket) => {
    while (unsent.length > 0) {
      const written = socket.write(unsent)
      if (written <= 0) return
      unsent = unsent.subarray(written)
    }
  }
  const send = (bytes: string | Uint8Array) => {
    unsent = Buffer.concat([unsent, Buffer.from(bytes as string)])
    flush(socket)
  }
  const handlers: Bun.SocketHandler<undefined> = {
    open: (connection) => (reads ? undefined : void connection.pause()),
    drain: flush,
    data: (_, bytes) => void (text += bytes.toString('latin1')),
    close: () => void (isClosed = true),
    error: () => {},
  }
  const { hostname, port, pathname } = new URL(url)
  const socket = url.startsWith('unix:')
    ? await Bun.connect({ unix: pathname, socket: handlers })
    : await Bun.connect({ hostname, port: Number(port), socket: handlers })
  send(body)
  return { text: () => text, closed: () => isClosed, send, end: () => void socket.terminate() }
}

/** The head of a request with a key. */
export function headOf(line: string, key: string, ...headers: string[]): string[] {
  return [`${line} HTTP/1.1`, `authorization: Bearer ${key}`, ...headers]
}

/** The head of a post of events that declares this many bytes. */
export function postHead(key: string, bytes: number): string[] {
  return headOf('POST /v1/sdk/events', key, 'content-type: application/json', `content-length: ${bytes}`)
}
