/** A certified OpenID Connect provider on loopback, whose sign-in page accepts any name: the name is the subject. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'

export interface IdentityProvider {
  issuer: string
  /** Call when the redirect address is known. */
  knows(client: { id: string; secret: string; redirectUri: string }): void
  /** Verified email addresses, by subject. */
  people: Map<string, { email: string; verified: boolean }>
  stop(): Promise<void>
}

export async function startIdentityProvider(): Promise<IdentityProvider> {
  const people: IdentityProvider['people'] = new Map()
  let handle: RequestListener = (_request, response) => void response.writeHead(503).end()
  const server = createServer((request, response) => handle(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    issuer,
    people,
    knows({ id, secret, redirectUri }) {
      const findAccount = (_context: unknown, accountId: string) => {
        const person = people.get(accountId)
        const email = person === undefined ? {} : { email: person.email, email_verified: person.verified }
        return { accountId, claims: () => ({ sub: accountId, ...email }) }
      }
      const client = {
        client_id: id,
        client_secret: secret,
        redirect_uris: [redirectUri],
        token_endpoint_auth_method: 'client_secret_post',
      }
      const claims = { openid: ['sub'], email: ['email', 'email_verified'] }
      const cookies = { keys: ['only for tests'] }
      handle = new Provider(issuer, { clients: [client], findAccount, claims, cookies }).callback()
    },
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
