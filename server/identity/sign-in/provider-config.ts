/** Where an identity provider is and how we are known there, as the start of the appliance says it. */

export interface OidcConfig {
  issuer: string
  clientId: string
  clientSecret: string | null // null: a public client, which PKCE alone protects
  name: string // on the button
}
