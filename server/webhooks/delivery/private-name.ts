/** Names that lead inside wherever they are resolved: private networks, and this machine itself. */

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

/** RFC 6761 reserves `localhost` and everything below it; hosts files of common systems add the other spellings. */
const loopbackNames = [
  'localhost',
  'localhost.localdomain',
  'localhost4',
  'localhost4.localdomain4',
  'localhost6',
  'localhost6.localdomain6',
  'ip6-localhost',
  'ip6-loopback',
]

/** Names that mean this machine wherever they are resolved. */
export function isLoopbackName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  return name.endsWith('.localhost') || loopbackNames.includes(name)
}
