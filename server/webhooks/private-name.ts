/** Names that lead inside wherever they are resolved: a proxy is not handed them. */

/** Reserved for private networks, among them those under which clouds answer with credentials. */
const privateEndings = ['.internal', '.local', '.localhost', '.localdomain', '.home.arpa']
const metadataNames = ['metadata.goog']

/** `host` as it stands in a URL. A name of one word is looked up in the own domain of whoever resolves it. */
export function isPrivateName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  return (
    !name.includes('.') ||
    metadataNames.includes(name) ||
    privateEndings.some((ending) => name.endsWith(ending))
  )
}
