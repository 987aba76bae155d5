/** The cost of verifying a signed request, compared with the bare verification of its signature by the runtime. */
import { createKeyring, createNonceMemory } from '../../sdk/judge/signature-keys.ts'
import { signatureBase } from '../../sdk/judge/signature-base.ts'
import { verifySignature } from '../../sdk/judge/signature.ts'
import { type InnerList, parseDictionary } from '../../sdk/judge/structured-fields.ts'
import { createSigner, signedAtSeconds } from '../support/sign-request.ts'
import { machine, recordTable, table } from './report.ts'

const signer = createSigner()
const agent = 'sig1="https://agent.example"'
const cover = ['"@authority"', '"@method"', '"@path"', '"signature-agent";key="sig1"']
const nonce = 'JojDFWJ90jf+gZhdKeTyJYsu1XvNPZSFAGhvYq5SuV3gneOEUAhq+xl792WGuD1W+Dr6NRmx+m+t06NsYnL4iA=='
const request = signer.sign({ agent, cover, nonce })
const headers = new Headers([...request.headers, ['accept', '*/*'], ['user-agent', 'ExampleBot/1.0']])
const directory = { operator: 'Example', url: 'https://agent.example/', keys: [signer.jwk] }
const keyring = await createKeyring([directory])
const nowMs = () => signedAtSeconds * 1_000

const [knownKey] = keyring.byId.get(signer.keyId)!
const bytes = Buffer.from(request.headers.at(-1)![1].slice(6, -1), 'base64')
const signed = new TextEncoder().encode(
  [
    '"@authority": shop.example',
    '"@method": GET',
    '"@path": /products/7',
    '"signature-agent";key="sig1": "https://agent.example"',
    `"@signature-params": ${request.headers[1]![1].slice(5)}`,
  ].join('\n'),
)

const runs = {
  floor: () => crypto.subtle.verify('Ed25519', knownKey!.key, bytes, signed),
  verify: async () => {
    const options = { keyring, hosts: ['shop.example'], nonces: createNonceMemory(1), nowMs }
    return (await verifySignature({ ...request, headers }, options)).state === 'valid'
  },
  own: () => {
    const covered = parseDictionary(headers.get('signature-input') ?? '').get('sig1') as InnerList
    const hasSignature = parseDictionary(headers.get('signature') ?? '').has('sig1')
    const text = signatureBase({ ...request, headers }, covered)
    return Promise.resolve(hasSignature && new TextEncoder().encode(text).length === signed.length)
  },
  unknown: async () => {
    const options = { keyring: { byId: new Map(), skipped: 0 }, nowMs }
    return (await verifySignature({ ...request, headers }, options)).state === 'invalid'
  },
} satisfies { [name: string]: () => Promise<boolean> }

/** µs per request. */
export type SignatureBench = { [Name in keyof typeof runs]: number }

const titles: { [Name in keyof SignatureBench]: string } = {
  floor: 'floor: crypto.subtle.verify',
  verify: 'verifySignature',
  own: 'parsing the headers and building the signature base',
  unknown: 'verifySignature, key unknown',
}

/** The best of several alternating rounds. On a shared machine, the best round says most about the code. */
export async function signatureBench(options: { rounds: number; roundMs: number }): Promise<SignatureBench> {
  const best: SignatureBench = { floor: Infinity, verify: Infinity, own: Infinity, unknown: Infinity }
  for (let round = 0; round < options.rounds; round++) {
    for (const [name, run] of Object.entries(runs) as [keyof SignatureBench, () => Promise<boolean>][]) {
      const start = performance.now()
      let count = 0
      while (performance.now() - start < options.roundMs) {
        if (!(await run())) throw new Error(`${titles[name]}: the wrong result`)
        count++
      }
      best[name] = Math.min(best[name], ((performance.now() - start) * 1_000) / count)
    }
  }
  return best
}

export function signatureTable(result: SignatureBench): string {
  const names = Object.keys(titles) as (keyof SignatureBench)[]
  const rows = names.map((name) => [titles[name], result[name].toFixed(1), Math.round(1e6 / result[name])])
  return table(['four components and a nonce', 'µs/request', 'requests/s'], rows)
}

if (import.meta.main) {
  const short = process.argv.includes('--short')
  const text = signatureTable(
    await signatureBench(short ? { rounds: 3, roundMs: 50 } : { rounds: 7, roundMs: 300 }),
  )
  process.stdout.write(`${machine()}\n\n${text}\n`)
  if (!short) recordTable('Verifying a signature', text)
}
