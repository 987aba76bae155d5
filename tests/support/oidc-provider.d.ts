/** The part of `oidc-provider` that tests use; the package has no types. */
declare module 'oidc-provider' {
  import type { RequestListener } from 'node:http'

  interface Provider {
    callback(): RequestListener
  }
  const Provider: new (issuer: string, configuration: { [member: string]: unknown }) => Provider
  export default Provider
}
