/** Identity providers as companies configure them: each proves the same identity, or says why it does not. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import {
  signInAt,
  startIdentityProvider,
  type IdentityProvider,
} from '../../../tests/support/identity-provider.ts'
import { providerReason } from './provider-reason.ts'
import { makeProvider } from './provider-routes.ts'

const redirectUri = 'http://127.0.0.1:1/api/oidc/callback'
const secret = 'a secret: with+signs/and=%more'
const email = 'ada@example.com'

let provider: IdentityProvider
beforeAll(async () => {
  provider = await startIdentityProvider()
})
afterAll(() => provider.stop())

type Known = Partial<Parameters<IdentityProvider['knows']>[0]>

async function proven(client: Known, clientSecret: string | null = secret, issuer = provider.issuer) {
  provider.knows({ id: 'sightglass', secret, redirectUri, ...client })
  const ownProvider = makeProvider({ issuer, clientId: 'sightglass', clientSecret, name: 'ID' })
  const { url, authorization } = await ownProvider.begin(redirectUri)
  return ownProvider.finish(await signInAt(url, 'ada'), authorization)
}

const methods = (...clientAuthMethods: string[]) => ({ clientAuthMethods })
const method = (token_endpoint_auth_method: string) => ({ token_endpoint_auth_method })
const list = 'token_endpoint_auth_methods_supported'

function signingKey(alg: 'ES384' | 'EdDSA') {
  const { privateKey } =
    alg === 'EdDSA' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: 'P-384' })
  return { ...privateKey.export({ format: 'jwk' }), alg, use: 'sig', kid: alg }
}

/** A provider that signs identity tokens otherwise than by RS256. */
function signing(alg: string, keys: object[] = []): Known {
  return {
    metadata: { id_token_signed_response_alg: alg },
    options: {
      enabledJWA: { idTokenSigningAlgValues: ['RS256', alg] },
      ...(keys.length > 0 ? { jwks: { keys } } : {}),
    },
  }
}

const configurations: { [name: string]: Known & { clientSecret?: null; verified?: string } } = {
  'basic only': { metadata: method('client_secret_basic'), options: methods('client_secret_basic') },
  'post only': { metadata: method('client_secret_post'), options: methods('client_secret_post') },
  'basic, and metadata without a list': { metadata: method('client_secret_basic'), unsaid: [list] },
  'post, and metadata without a list': { metadata: method('client_secret_post'), unsaid: [list] },
  'both, and a client of post': { metadata: method('client_secret_post') },
  'a JWT under the secret': {
    metadata: method('client_secret_jwt'),
    options: methods('client_secret_jwt', 'private_key_jwt'),
  },
  'a public client with PKCE': {
    metadata: { ...method('none'), client_secret: undefined },
    clientSecret: null,
  },
  'claims in the identity token': { options: { conformIdTokenClaims: false } },
  'email_verified as text': { verified: 'true' },
  'email_verified as text in the identity token': {
    verified: 'true',
    options: { conformIdTokenClaims: false },
  },
  'only the address in the identity token': {
    options: { conformIdTokenClaims: false },
    untold: ['email_verified'],
  },
  'a token signed by ES384': signing('ES384', [signingKey('ES384')]),
  'a token signed by EdDSA': signing('EdDSA', [signingKey('EdDSA')]),
  'a token signed under the secret': signing('HS256'),
  'signed userinfo': {
    metadata: { userinfo_signed_response_alg: 'RS256' },
    options: { features: { jwtUserinfo: { enabled: true }, devInteractions: { enabled: true } } },
  },
}

for (const [name, { clientSecret = secret, verified = true, ...client }] of Object.entries(configurations))
  test(`signs in: ${name}`, async () => {
    provider.people.set('ada', { email, verified })
    expect(await proven(client, clientSecret)).toEqual({ issuer: provider.issuer, subject: 'ada', email })
  })

test('an address that is not verified, in whatever words, is no address', async () => {
  for (const verified of [false, 'false', 'yes', '1', '']) {
    provider.people.set('ada', { email, verified })
    expect(await proven({})).toMatchObject({ subject: 'ada', email: null })
  }
})

const reasonOf = async (work: Promise<unknown>) =>
  providerReason(
    await work.then(
      () => 'no error',
      (error: unknown) => error,
    ),
  )

test('a provider that knows no method of this client is refused before anybody signs in there', async () => {
  const key = { kty: 'EC', crv: 'P-256', x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU' }
  const y = 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0'
  provider.knows({
    id: 'sightglass',
    secret,
    redirectUri,
    metadata: { ...method('private_key_jwt'), jwks: { keys: [{ ...key, y }] } },
    options: methods('private_key_jwt'),
  })
  const ownProvider = makeProvider({
    issuer: provider.issuer,
    clientId: 'sightglass',
    clientSecret: secret,
    name: 'ID',
  })
  expect(await reasonOf(ownProvider.begin(redirectUri))).toBe(
    'the provider authenticates clients by private_key_jwt only; allow this client client_secret_basic, ' +
      'client_secret_post, client_secret_jwt there, or none, with SIGHTGLASS_OIDC_CLIENT_SECRET unset, ' +
      'for a public client with PKCE',
  )
})

test('the address of a provider may end with a slash, or be that of its metadata', async () => {
  provider.people.set('ada', { email, verified: true })
  for (const end of ['/', '/.well-known/openid-configuration'])
    expect(await proven({}, secret, provider.issuer + end)).toMatchObject({
      issuer: provider.issuer,
      subject: 'ada',
    })
})

test('a token signed by what the metadata does not list is refused with both algorithms', async () => {
  provider.people.set('ada', { email, verified: true })
  const known = { ...signing('ES384', [signingKey('ES384')]) }
  const unlisted = { ...known, unsaid: ['id_token_signing_alg_values_supported'] }
  expect(await reasonOf(proven(unlisted))).toContain('expected RS256, the provider says ES384')
})

test("the error names the provider's reason, and both issuers when they differ", async () => {
  provider.people.set('ada', { email, verified: true })
  expect(await reasonOf(proven({}, 'a wrong secret'))).toStartWith(
    'invalid_client: client authentication failed',
  )
  const otherIssuer = provider.issuer.replace('127.0.0.1', 'localhost')
  const reason = await reasonOf(proven({}, secret, otherIssuer))
  expect(reason).toContain(`expected ${otherIssuer}`)
  expect(reason).toContain(`the provider says ${provider.issuer}`)
  const ours = makeProvider({
    issuer: provider.issuer,
    clientId: 'sightglass',
    clientSecret: secret,
    name: 'ID',
  })
  const { authorization } = await ours.begin(redirectUri)
  const denied = new URL(redirectUri)
  for (const [name, value] of Object.entries({
    error: 'access_denied',
    error_description: 'Ada is not\n in the group',
    state: authorization.state,
    iss: provider.issuer,
  }))
    denied.searchParams.set(name, value)
  expect(await reasonOf(ours.finish(denied, authorization))).toBe('access_denied: Ada is not in the group')
  expect(await reasonOf(Promise.reject(new Error('plain')))).toBe('plain')
})
