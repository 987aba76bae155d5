/** Names, addresses and authorities of receivers with TLS. */
import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type TLSSocket } from 'node:tls'
import { connectTo, secure } from '../../server/webhooks/sinks/connection.ts'
import { selfSigned } from '../support/certificate.ts'
import { tempDir } from '../support/temp-dir.ts'

interface TlsServer extends AsyncDisposable {
  port: number
  /** The name in each handshake; false for none. */
  names: (string | false | undefined)[]
}

async function startServer(tls: { key: string; cert: string }, address = '127.0.0.1'): Promise<TlsServer> {
  const names: TlsServer['names'] = []
  const server = createServer(tls, (socket: TLSSocket) => {
    names.push((socket as TLSSocket & { servername?: string | false }).servername)
    socket.on('error', () => socket.destroy())
    socket.write('hello')
    socket.resume()
  })
  await new Promise<void>((resolve) => server.listen(0, address, resolve))
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('the server has no port')
  return {
    port: bound.port,
    names,
    async [Symbol.asyncDispose]() {
      server.close()
    },
  }
}

async function handshake(host: string, peer: { address: string; port: number }, ca: string): Promise<string> {
  const signal = AbortSignal.timeout(30_000)
  const socket = await connectTo(peer, signal)
  try {
    const tls = await secure(socket, { host, ca, signal })
    await once(tls, 'data')
    return 'secure'
  } catch (error) {
    return String((error as { code?: string }).code)
  } finally {
    socket.destroy()
  }
}

test('a name with a dot at the end is sent and compared without it', async () => {
  const tls = selfSigned('hooks.test')
  await using server = await startServer(tls)
  const peer = { address: '127.0.0.1', port: server.port }
  expect(await handshake('hooks.test.', peer, tls.cert)).toBe('secure')
  expect(await handshake('hooks.test', peer, tls.cert)).toBe('secure')
  expect(await handshake('other.test', peer, tls.cert)).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
  expect(server.names.slice(0, 2)).toEqual(['hooks.test', 'hooks.test'])
})

test.each(['127.0.0.1', '::1'])('the certificate of %s has this address', async (address) => {
  const tls = selfSigned(address)
  await using server = await startServer(tls, address)
  const peer = { address, port: server.port }
  expect(await handshake(address, peer, tls.cert)).toBe('secure')
  expect(await handshake('10.0.0.1', peer, tls.cert)).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
  expect(server.names[0]).toBeFalsy()
})

test('authorities of --webhook-ca-file are trusted in addition to the public ones', async () => {
  using folder = tempDir('authorities')
  const publicReceiver = selfSigned('hooks.test')
  await using server = await startServer(publicReceiver)
  const publicFile = folder.join('public.pem')
  writeFileSync(publicFile, publicReceiver.cert)
  const ca = selfSigned('other.test').cert
  const module = import.meta.resolve('../../server/webhooks/sinks/connection.ts')
  const script = `
    import { connectTo, secure } from ${JSON.stringify(module)}
    const signal = AbortSignal.timeout(30_000)
    const socket = await connectTo({ address: '127.0.0.1', port: ${server.port} }, signal)
    const ca = ${JSON.stringify(ca)}
    await secure(socket, { host: 'hooks.test', ca, signal }).then(
      () => process.stdout.write('secure'),
      (error) => process.stdout.write(String(error.code)),
    )
    process.exit(0)`
  const answer = async (publicAuthorities: { [name: string]: string }): Promise<string> => {
    const env = { ...process.env, ...publicAuthorities }
    return (await new Response(Bun.spawn([process.execPath, '-e', script], { env }).stdout).text()).trim()
  }
  // The runtime counts these authorities as public ones.
  expect(await answer({ NODE_EXTRA_CA_CERTS: publicFile })).toBe('secure')
  expect(await answer({})).toBe('DEPTH_ZERO_SELF_SIGNED_CERT')
})

test('each authority of a bundle counts', async () => {
  const tls = selfSigned('hooks.test')
  await using server = await startServer(tls)
  const peer = { address: '127.0.0.1', port: server.port }
  expect(await handshake('hooks.test', peer, `${selfSigned('first.test').cert}${tls.cert}`)).toBe('secure')
})
