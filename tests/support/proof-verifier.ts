/** Runs the documentation's verifier of audit proofs as its reader would. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from './temp-dir.ts'

export async function documentedVerifier(proof: string, key?: string): Promise<string> {
  using dir = tempDir('proof')
  const page = readFileSync(join(import.meta.dir, '../../server/audit/PROOF.md'), 'utf8')
  const code = /```js\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
  writeFileSync(join(dir.path, 'verify-proof.mjs'), code)
  writeFileSync(join(dir.path, 'proof.jsonl'), proof)
  const child = Bun.spawn([process.execPath, 'verify-proof.mjs', 'proof.jsonl', ...(key ? [key] : [])], {
    cwd: dir.path,
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return (await new Response(child.stdout).text()).trim()
}
