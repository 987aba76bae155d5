/**
 * `bun scripts/evidence-pack.ts FILE`: prepares an evidence pack for a release. Writes the digests of its lists, the
 * names of our list of agents for robots.txt, and the time. With SIGHTGLASS_EVIDENCE_KEY, a file with the private key
 * (PEM, Ed25519), it signs the pack; the public key must be in server/evidence/pack-file.ts.
 */
import { createPrivateKey } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { listVersion, operators, reportedName } from '../sdk/agents/agent-list.ts'
import { agentSources } from '../sdk/agents/agent-sources.ts'
import type { EvidencePack, ProductTokens } from '../sdk/judge/evidence-pack.ts'
import { packFileText, readPackFile } from '../server/evidence/pack-file.ts'

/** Robots.txt names agents as their user agents do; the list says when it was last compared. */
function ownTokens(): ProductTokens[] {
  return operators.map(({ vendor, agents }) => ({
    operator: vendor,
    source: agentSources[vendor]!,
    seen: listVersion,
    digest: '',
    tokens: [...new Set(Object.keys(agents).map(reportedName))],
  }))
}

const [path] = process.argv.slice(2)
if (path === undefined) throw new Error('name the file of the pack')
const keyFile = process.env['SIGHTGLASS_EVIDENCE_KEY']
const key = keyFile === undefined ? null : createPrivateKey(readFileSync(keyFile))
const { signature: _old, ...pack } = JSON.parse(readFileSync(path, 'utf8')) as EvidencePack & {
  signature?: unknown
}
const text = packFileText({ ...pack, made: new Date().toISOString(), tokens: ownTokens() }, key)
const { digest, signature } = readPackFile(text)
writeFileSync(path, text)
process.stdout.write(`${path}: digest ${digest}, signature ${signature}\n`)
