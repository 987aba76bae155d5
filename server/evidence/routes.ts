/** GET /api/evidence shows the evidence pack in force in Settings; GET /sdk/evidence.json is its file, for clients. */
import { Elysia } from 'elysia'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Clock } from '../clock.ts'
import { assetResponse, type Asset } from '../http/assets.ts'
import { readQuery } from '../http/request.ts'
import { json } from '../http/response.ts'
import type { SignIns } from '../identity/sign-in/sign-ins.ts'
import type { EvidenceInForce, EvidenceReader } from './evidence.ts'
import { evidenceView } from './view.ts'

interface EvidenceRoutesServices {
  evidence: EvidenceReader
  evidenceMaxAgeDays: number
  clock: Clock
  signIns: SignIns
}

export function evidenceRoutes({ evidence, evidenceMaxAgeDays, clock, signIns }: EvidenceRoutesServices) {
  const assetOf = packAssets()
  return new Elysia()
    .get('/api/evidence', async ({ request }) => {
      await signIns.require(request)
      readQuery(request, {})
      return json(evidenceView(await evidence.current(), clock.now(), evidenceMaxAgeDays))
    })
    .get('/sdk/evidence.json', async ({ request }) => {
      const asset = await assetOf(await evidence.current())
      return assetResponse(request, asset, { 'cache-control': 'no-cache' })
    })
}

const compress = promisify(gzip)

/** Compresses each pack once, on another thread, because it may have 8 MiB and needs no key. */
function packAssets(): (pack: EvidenceInForce) => Promise<Asset> {
  let cache: { digest: string; asset: Promise<Asset> } | null = null
  return ({ digest, file }) => {
    if (cache?.digest !== digest) cache = { digest, asset: packAsset(digest, file()) }
    return cache.asset
  }
}

async function packAsset(digest: string, file: string): Promise<Asset> {
  const identity = new TextEncoder().encode(file)
  const gzip = new Uint8Array(await compress(identity))
  const bytes = new Map([
    ['identity', identity],
    ['gzip', gzip],
  ])
  return { type: 'application/json', hash: digest.slice(0, 22), encodings: ['gzip'], bytes }
}
