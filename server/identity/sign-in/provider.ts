/** An identity provider of the network (OpenID Connect): where to send people, and who comes back from there. */
import * as client from 'openid-client'
import { noteCall } from '../../system/outbound.ts'

/** What must come back with a person; kept by their browser, sealed. */
export interface Errand {
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
  begin(redirectUrl: string): Promise<{ url: string; errand: Errand }>
  /** Who came back to `url`; rejects when anything is not as it was sent. */
  finish(url: URL, errand: Errand): Promise<ProvenIdentity>
}

/** Nothing is asked of the provider before somebody signs in: an appliance starts also while it is away. */
export function makeProvider({ issuer, clientId, clientSecret, name }: OidcConfig): Provider {
  let found: Promise<client.Configuration> | null = null
  const discover = (): Promise<client.Configuration> => {
    // Plain HTTP is for a provider on this machine; the configuration takes it nowhere else.
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
      const errand = { state: client.randomState(), nonce: client.randomNonce(), verifier }
      const url = client.buildAuthorizationUrl(await discover(), {
        redirect_uri: redirectUrl,
        scope: 'openid email',
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state: errand.state,
        nonce: errand.nonce,
      })
      return { url: url.href, errand }
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
      const told =
        claims['email'] === undefined
          ? await client.fetchUserInfo(config, tokens.access_token, claims.sub)
          : claims
      const verified = told['email_verified'] === true && typeof told['email'] === 'string'
      const email = verified ? String(told['email']).toLowerCase() : null
      return { issuer: claims.iss, subject: claims.sub, email }
    },
  }
}

/** Where an identity provider is and how we are known there, as the start of the appliance says it. */
export interface OidcConfig {
  issuer: string
  clientId: string
  clientSecret: string | null // null: a public client, which PKCE alone protects
  name: string // on the button
}
