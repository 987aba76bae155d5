/** Strange responses, as raw bytes of a real receiver: a message that was answered with 2xx is never sent again. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { webhookServer, type WebhookServer } from '../support/webhook-server.ts'

let webhooks: WebhookServer
let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver()
  webhooks = await webhookServer()
})
afterAll(async () => {
  await webhooks[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

interface Delivery {
  status: string
  nextAttemptAt: string | null
  attemptLog: { at: string; status: number | null; error: string | null; responseExcerpt: string }[]
}

/** The delivery after one attempt at this path of the receiver. */
async function deliver(path: string): Promise<Delivery> {
  const url = `${receiver.url}${path}`
  const { deliveryId } = await webhooks.api<{ deliveryId: string }>('POST', '/v1/webhooks/test', { url }, 202)
  await webhooks.run()
  return webhooks.api<Delivery>('GET', `/v1/webhooks/${deliveryId}`)
}

const rawPath = (response: string): string => `/raw/${Buffer.from(response, 'latin1').toString('base64url')}`

const length = 'Content-Length: 2\r\n'
const delivered: { [name: string]: string } = {
  'a folded header line': `HTTP/1.1 200 OK\r\nX-Policy: first;\r\n second\r\n${length}\r\nok`,
  'a header line folded with a tab': `HTTP/1.1 200 OK\r\nX-Policy: first;\r\n\tsecond\r\n${length}\r\nok`,
  'a folded line in front of all headers': `HTTP/1.1 200 OK\r\n folded\r\n${length}\r\nok`,
  'a line of blanks only, which is a fold':
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n \t\r\nX-After: v\r\n\r\nok',
  'a value on ten lines': `HTTP/1.1 200 OK\r\nX-Device: a;\r\n${' b;\r\n'.repeat(9)}${length}\r\nok`,
  'a space before the colon': `HTTP/1.1 200 OK\r\nX-Cache : HIT\r\n${length}\r\nok`,
  'a space before the colon of the length': 'HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok',
  'a space in a name': `HTTP/1.1 200 OK\r\nX Cache: HIT\r\n${length}\r\nok`,
  'a line without a colon': `HTTP/1.1 200 OK\r\nnonsense\r\n${length}\r\nok`,
  'a line without a name': `HTTP/1.1 200 OK\r\n: nonsense\r\n${length}\r\nok`,
  'a control character in a value': `HTTP/1.1 200 OK\r\nX-Id: a\u0001b\u0000c\r\n${length}\r\nok`,
  'a value in Latin-1': `HTTP/1.1 200 OK\r\nX-City: Z\u00fcrich\r\n${length}\r\nok`,
  'lines that end with a line feed': 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok',
  'no reason phrase': `HTTP/1.1 200\r\n${length}\r\nok`,
  'HTTP/1.0 without a length': 'HTTP/1.0 200 OK\r\n\r\nok',
  'another minor version': `HTTP/1.2 200 OK\r\n${length}\r\nok`,
  'a version without a minor number': `HTTP/2 200 OK\r\n${length}\r\nok`,
  'an empty line in front': `\r\nHTTP/1.1 200 OK\r\n${length}\r\nok`,
  'interim responses': `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n${length}\r\nok`,
  'two equal lengths': `HTTP/1.1 200 OK\r\n${length}${length}\r\nok`,
  'two lengths on one line': 'HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok',
  'two different lengths': `HTTP/1.1 200 OK\r\n${length}Content-Length: 3\r\n\r\nok`,
  'an empty length': 'HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nok',
  'a length that is no number': 'HTTP/1.1 200 OK\r\nContent-Length: unknown\r\n\r\nok',
  'a length with a sign': 'HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok',
  'a length beside chunks': `HTTP/1.1 200 OK\r\n${length}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
  'chunks with an extension and a trailer':
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1;x=y\r\no\r\n1 \r\nk\r\n0\r\nX-Sum: 1\r\n\r\n',
  'chunks that end early': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nok',
  'a body that ends early': 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok',
  'a body longer than its length': `HTTP/1.1 200 OK\r\n${length}\r\nok and more`,
}

test.each(Object.keys(delivered))('delivered at the first attempt: %s', async (name) => {
  for (const end of ['', '/bytes']) {
    const delivery = await deliver(`${rawPath(delivered[name]!)}${end}`)
    const attempts = delivery.attemptLog.map(({ status, error, responseExcerpt }) => ({
      status,
      error,
      responseExcerpt,
    }))
    expect(attempts).toEqual([{ status: 200, error: null, responseExcerpt: 'ok' }])
    expect(delivery.status).toBe('delivered')
  }
})

test.each(['/headers/256', '/headers/257', '/headers/5000', '/endless-head'])(
  '%s is delivered, whatever its head',
  async (path) => {
    const { status, attemptLog } = await deliver(path)
    expect([status, attemptLog.length]).toEqual(['delivered', 1])
  },
)

test('chunks that are none: the status decides, and the excerpt is what came before', async () => {
  const { status, attemptLog } = await deliver(
    rawPath('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\nzz\r\nk'),
  )
  expect([status, attemptLog[0]?.responseExcerpt]).toEqual(['delivered', 'o'])
})

test.each([
  'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
  'HTTP/1.1 200 OK\r\n\r\n',
  'HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'HTTP/1.1 204 No Content\r\n\r\n',
  'HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n',
  'HTTP/1.1 299 Custom\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{',
])('%j is delivered, with whatever body', async (response) => {
  const { status, attemptLog } = await deliver(rawPath(response))
  expect([status, attemptLog.length]).toEqual(['delivered', 1])
})

test('204 with a body has none', async () => {
  const { status, attemptLog } = await deliver(rawPath(`HTTP/1.1 204 No Content\r\n${length}\r\nok`))
  expect([status, attemptLog[0]?.responseExcerpt]).toEqual(['delivered', ''])
})

test.each([
  ['hello there\r\n\r\n', 'bad_answer'],
  ['ICY 200 OK\r\n\r\n', 'bad_answer'],
  ['HTTP/1.1 2000 OK\r\n\r\n', 'bad_answer'],
  ['HTTP/1.1 099 OK\r\n\r\n', 'bad_answer'],
  ['HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n', 'http_101'],
  ['HTTP/1.1 302 Found\r\nLocation: http://[\r\n\r\n', 'http_302'],
  ['HTTP/1.1 200 OK\r\nX-Cut: of', 'connection_reset'],
  ['', 'connection_reset'],
])('%j is retried as %s', async (response, code) => {
  const { status, attemptLog } = await deliver(rawPath(response))
  expect([status, attemptLog[0]?.error?.split(':')[0]]).toEqual(['pending', code])
})

const inTenMinutes = (ms: number): Date => new Date(Math.ceil(ms / 1_000) * 1_000 + 600_000)
const retryAfter: { [name: string]: (nowMs: number) => string } = {
  seconds: () => 'Retry-After: 600\r\n',
  'seconds behind a fold': () => 'Retry-After:\r\n 600\r\n',
  'seconds behind a space': () => 'Retry-After : 600\r\n',
  'the first of two': () => 'Retry-After: 600\r\nRetry-After: 5\r\n',
  'an HTTP date': (nowMs) => `Retry-After: ${inTenMinutes(nowMs).toUTCString()}\r\n`,
  'a date of RFC 850': (nowMs) => {
    const date = inTenMinutes(nowMs)
    const day = date.toLocaleDateString('en-US', { weekday: 'long', timeZone: 'UTC' })
    const [, dayOfMonth, month, year, time] = date.toUTCString().split(' ')
    return `retry-after: ${day}, ${dayOfMonth}-${month}-${year!.slice(2)} ${time} GMT\r\n`
  },
  'a date of asctime': (nowMs) => {
    const [weekday, day, month, year, time] = inTenMinutes(nowMs).toUTCString().split(' ')
    return `RETRY-AFTER: ${weekday!.slice(0, 3)} ${month} ${String(Number(day)).padStart(2)} ${time} ${year}\r\n`
  },
}

test.each(Object.keys(retryAfter))('Retry-After as %s lengthens the wait', async (name) => {
  const head = retryAfter[name]!(webhooks.server.clock.now())
  const { status, nextAttemptAt, attemptLog } = await deliver(
    rawPath(`HTTP/1.1 503 Service Unavailable\r\n${head}${length}\r\nno`),
  )
  expect(status).toBe('pending')
  const waitMs = Date.parse(nextAttemptAt!) - Date.parse(attemptLog[0]!.at)
  expect(waitMs).toBeWithin(600_000, 660_000) // the configured wait is one second
})
