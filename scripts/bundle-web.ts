/** Bundles the dashboard from `web/index.html` into a folder of hashed files. */
import { join } from 'node:path'

export interface BundleWeb {
  root: string
  outDir: string
  /** Also the production build of preact; off while developing, for readable stacks. */
  minify: boolean
}

export async function bundleWeb({ root, outDir, minify }: BundleWeb): Promise<void> {
  const result = await Bun.build({
    entrypoints: [join(root, 'web', 'index.html')],
    outdir: outDir,
    target: 'browser',
    minify,
    splitting: true,
    sourcemap: minify ? 'none' : 'inline',
    publicPath: '/',
    naming: {
      entry: '[name].[ext]',
      chunk: 'assets/[name]-[hash].[ext]',
      asset: 'assets/[name]-[hash].[ext]',
    },
    define: { 'process.env.NODE_ENV': minify ? '"production"' : '"development"' },
    throw: false,
  })
  if (!result.success) throw new Error(`web: ${result.logs.map(String).join('\n')}`)
}
