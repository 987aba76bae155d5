/** A large batch with a wrong key gets its 401: the connection reads the rest of the body and stays usable. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer

beforeAll(async () => {
  server = await testServer()
})
afterAll(() => server[Symbol.asyncDispose]())

function open(onAnswer: (text: string) => void, onBroken: (error: unknown) => void): Socket {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  socket.on('data', (data) => onAnswer(String(data)))
  socket.on('error', onBroken)
  socket.on('close', () => onBroken(new Error('the connection was closed')))
  return socket
}

const headOf = (bytes: number) =>
  `POST /v1/sdk/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${bytes}\r\n\r\n`

test('the 401 arrives while 30 MB are in transit, and the next request is answered too', async () => {
  const answers: string[] = []
  const broken = Promise.withResolvers<never>()
  const socket = open((text) => answers.push(text), broken.reject)
  const piece = Buffer.alloc(1_000_000, 'x')
  const write = (data: string | Buffer) =>
    new Promise<void>((resolve) => void socket.write(data, () => resolve()))
  const sendAll = async () => {
    await write(headOf(30 * piece.length))
    for (let pieceIndex = 0; pieceIndex < 30; pieceIndex++) await write(piece)
    await write(headOf(2) + '{}')
    while ((answers.join('').match(/HTTP\/1\.1 401 /g) ?? []).length < 2) await Bun.sleep(5)
  }
  await Promise.race([sendAll(), broken.promise])
  expect(answers.join('')).toContain('"reason":"missing_bearer"')
  socket.removeAllListeners('close')
  socket.destroy()
}, 90_000)
