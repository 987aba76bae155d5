/** Signs deliveries as Standard Webhooks 1.0.0 defines: the secret, the signature and its three headers. */
import { createHmac } from 'node:crypto'

interface Message {
  id: string // the same for every attempt
  body: string // exactly as sent
}

/** `v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`; the time is that of the attempt, in whole seconds. */
function signature(secret: string, message: Message, timestampS: number): string {
  const signed = `${message.id}.${timestampS}.${message.body}`
  return `v1,${createHmac('sha256', signingKey(secret)).update(signed, 'utf8').digest('base64')}`
}

/** The headers of one attempt. During a rotation both secrets sign, the newer first; receivers accept either. */
export function signedHeaders(secrets: string[], message: Message, nowMs: number): Record<string, string> {
  const timestampS = Math.floor(nowMs / 1_000)
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': secrets.map((secret) => signature(secret, message, timestampS)).join(' '),
  }
}

/** The form of secrets in Standard Webhooks: `whsec_` and the base64 of random bytes. */
const prefix = 'whsec_'
const bytesMin = 24
const bytesMax = 64

/** The key of a `whsec_` secret; throws unless it has 24 to 64 bytes. */
export function signingKey(secret: string): Buffer {
  const text = secret.startsWith(prefix) ? secret.slice(prefix.length) : ''
  const key = Buffer.from(text, 'base64')
  // Buffer ignores invalid characters, so only text that encodes to itself is valid base64.
  const isExact = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '')
  if (!isExact || key.length < bytesMin || key.length > bytesMax) throw new Error('not a signing secret')
  return key
}

/** The purpose a secret is encrypted for, so that it decrypts only for its endpoint or organization. */
export function secretPurpose({ orgId, endpointId }: { orgId: string; endpointId: string | null }): string {
  return endpointId === null ? `webhook-org:${orgId}` : `webhook-endpoint:${endpointId}`
}

/** Code for receivers that verifies our signatures; a test runs each snippet. */
interface Snippet {
  language: string
  code: string
}

const javascript = `import { createHmac, timingSafeEqual } from 'node:crypto'

/** Whether Sightglass sent this. \`body\` is the raw request body; \`headers\` has lower-case names. */
export function isGenuine(secret, headers, body) {
  const id = headers['webhook-id']
  const timestamp = headers['webhook-timestamp']
  const signatures = headers['webhook-signature'] ?? ''
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300)) return false
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const expected = createHmac('sha256', key).update(\`\${id}.\${timestamp}.\${body}\`).digest()
  return signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature.replace(/^v1,/, ''), 'base64')
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}
`

const python = `import base64, hashlib, hmac, time

def is_genuine(secret, headers, body):
    """Whether Sightglass sent this. body: the raw request body (bytes); headers: a dict with lower-case names."""
    message_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > 300:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(expected, signature) for signature in given)
`

const shell = `# usage: is_genuine SECRET ID TIMESTAMP SIGNATURES BODY_FILE
is_genuine() {
  age=$(( $(date +%s) - $3 ))
  [ "\${age#-}" -le 300 ] || return 1
  key=$(printf %s "\${1#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \\n')
  expected=$({ printf '%s.%s.' "$2" "$3"; cat "$5"; } |
    openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)
  case " $4 " in *" v1,$expected "*) return 0 ;; *) return 1 ;; esac
}
`

export const snippets: Snippet[] = [
  { language: 'JavaScript', code: javascript },
  { language: 'Python', code: python },
  { language: 'Shell', code: shell },
]
