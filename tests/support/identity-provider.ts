/** A certified OpenID Connect provider on loopback, whose sign-in page accepts any name: the name is the subject. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'

interface KnownClient {
  id: string
  secret: string
  redirectUri: string
  /** Of the client, over what a client with a secret has. */
  metadata?: { [name: string]: unknown }
  /** Of the provider. */
  options?: { [name: string]: unknown }
  /** Claims that its identity token leaves out, although userinfo has them. */
  untold?: string[]
  /** Fields that its discovery document leaves out. */
  unsaid?: string[]
}

export interface IdentityProvider {
  issuer: string
  /** Call when the redirect address is known. */
  knows(client: KnownClient): void
  /** Verified email addresses, by subject. */
  people: Map<string, { email: string; verified: boolean | string }>
  stop(): Promise<void>
}

const discoveryPath = '/.well-known/openid-configuration'

/** Signs in on the provider's own pages without a browser. Returns the address of the callback. */
export async function signInAt(start: string, subject: string): Promise<URL> {
  const cookies = new Map<string, string>()
  async function visit(url: string, form?: { [name: string]: string }): Promise<URL> {
    const response = await fetch(url, {
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }),
      headers: { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') },
      redirect: 'manual',
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) throw new Error(`${response.status} ${await response.text()}`)
    return new URL(location, url)
  }
  const origin = new URL(start).origin
  let next = await visit(start)
  for (const prompt of ['login', 'consent']) {
    if (!next.pathname.startsWith('/interaction/')) continue
    next = await visit(next.href, { prompt, login: subject, password: 'whatever' })
    while (next.origin === origin && !next.pathname.startsWith('/interaction/')) next = await visit(next.href)
  }
  return next
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
    knows({ id, secret, redirectUri, metadata = {}, options = {}, unsaid = [], untold = [] }) {
      const claimsFor = (use: string, allClaims: object) =>
        use === 'id_token'
          ? Object.fromEntries(Object.entries(allClaims).filter(([name]) => !untold.includes(name)))
          : allClaims
      const findAccount = (_context: unknown, accountId: string) => {
        const person = people.get(accountId)
        const email = person === undefined ? {} : { email: person.email, email_verified: person.verified }
        return { accountId, claims: (use: string) => claimsFor(use, { sub: accountId, ...email }) }
      }
      const client = {
        client_id: id,
        client_secret: secret,
        redirect_uris: [redirectUri],
        token_endpoint_auth_method: 'client_secret_post',
        ...metadata,
      }
      const claims = { openid: ['sub'], email: ['email', 'email_verified'] }
      const cookies = { keys: ['only for tests'] }
      const answer = new Provider(issuer, {
        clients: [client],
        findAccount,
        claims,
        cookies,
        ...options,
      }).callback()
      handle = (request, response) => {
        const isWhole = unsaid.length === 0 || request.headers['x-whole'] !== undefined
        if (isWhole || request.url !== discoveryPath) return void answer(request, response)
        void fetch(issuer + discoveryPath, { headers: { 'x-whole': '1' } })
          .then((whole) => whole.json() as Promise<object>)
          .then((document) => Object.entries(document).filter(([name]) => !unsaid.includes(name)))
          .then((fields) => {
            response.setHeader('content-type', 'application/json')
            response.end(JSON.stringify(Object.fromEntries(fields)))
          })
      }
    },
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
