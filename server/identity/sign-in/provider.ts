/** The OpenID Connect client: builds authorization requests and verifies the identity that comes back. */
import * as client from 'openid-client'
import { noteCall } from '../../system/outbound.ts'

/** The secrets of one authorization request, stored encrypted in a cookie of the browser. */
export interface AuthorizationRequest {
  state: string
  nonce: string
  verifier: string
}

export interface ProvenIdentity {
  issuer: string
  subject: string
  email: string | null // only one that the provider has verified
}

export interface Provider {
  name: string
  begin(redirectUrl: string): Promise<{ url: string; authorization: AuthorizationRequest }>
  /** The identity behind the callback `url`; rejects when anything does not match the request. */
  finish(url: URL, authorization: AuthorizationRequest): Promise<ProvenIdentity>
}

/** Contacts the provider at the first sign-in only, so the appliance starts while the provider is down. */
export function makeProvider({ issuer, clientId, clientSecret, name }: OidcConfig): Provider {
  let found: Promise<client.Configuration> | null = null
  const discover = (): Promise<client.Configuration> => {
    // Plain HTTP is for a provider on this machine; the configuration allows no other.
    const execute = issuer.startsWith('http:') ? [client.allowInsecureRequests] : []
    found ??= client.discovery(new URL(issuer), clientId, clientSecret ?? undefined, undefined, {
      execute,
      timeout: 10,
      [client.customFetch]: (url, init) => {
        const { hostname, port, protocol } = new URL(url)
        const known = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
        noteCall({ what: 'sign-in provider', host: hostname, address: null, port: known })
        return fetch(url, init as RequestInit)
      },
    })
    found.catch(() => (found = null))
    return found
  }
  return {
    name,
    async begin(redirectUrl) {
      const verifier = client.randomPKCECodeVerifier()
      const authorization = { state: client.randomState(), nonce: client.randomNonce(), verifier }
      const url = client.buildAuthorizationUrl(await discover(), {
        redirect_uri: redirectUrl,
        scope: 'openid email',
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state: authorization.state,
        nonce: authorization.nonce,
      })
      return { url: url.href, authorization }
    },
    async finish(url, { state, nonce, verifier }) {
      const config = await discover()
      const checks = {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      }
      const tokens = await client.authorizationCodeGrant(config, url, checks)
      const claims = tokens.claims()
      if (claims === undefined) throw new Error('the provider sent no identity token')
      const profile =
        claims['email'] === undefined
          ? await client.fetchUserInfo(config, tokens.access_token, claims.sub)
          : claims
      const verified = profile['email_verified'] === true && typeof profile['email'] === 'string'
      const email = verified ? String(profile['email']).toLowerCase() : null
      return { issuer: claims.iss, subject: claims.sub, email }
    },
  }
}

/** The options of the operator. */
export interface OidcConfig {
  issuer: string
  clientId: string
  clientSecret: string | null // null: a public client, which PKCE alone protects
  name: string // on the button
}
