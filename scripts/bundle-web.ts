/** Bundles the dashboard from `web/index.html` into a folder of hashed files. */
import { join } from 'node:path'

export interface BundleWeb {
  root: string
  outDir: string
  /** Minifies and uses the production build of Preact; off in development, for readable stack traces. */
  minify: boolean
}

export async function bundleWeb({ root, outDir, minify }: BundleWeb): Promise<void> {
  const common = {
    outdir: outDir,
    target: 'browser' as const,
    minify,
    sourcemap: minify ? ('none' as const) : ('inline' as const),
    define: { 'process.env.NODE_ENV': minify ? '"production"' : '"development"' },
    throw: false,
  }
  const result = await Bun.build({
    ...common,
    entrypoints: [join(root, 'web', 'index.html')],
    splitting: true,
    publicPath: '/',
    naming: {
      entry: '[name].[ext]',
      chunk: 'assets/[name]-[hash].[ext]',
      asset: 'assets/[name]-[hash].[ext]',
    },
  })
  // A single file at a fixed address, which `web/api/shared-live.ts` opens.
  const worker = await Bun.build({
    ...common,
    entrypoints: [join(root, 'web/live/worker.ts')],
    naming: { entry: 'live-worker.[ext]' },
  })
  for (const { success, logs } of [result, worker])
    if (!success) throw new Error(`web: ${logs.map(String).join('\n')}`)
}
