/** Settings, SDK ingest keys: how to install the client package that this server provides. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { get } from '../../../api/api.ts'
import { ownAddress } from '../../../app/router.ts'
import { CodeBlock } from '../../../components/copy.tsx'
import { session } from '../../../app/session.ts'

interface Manifest {
  package: string
  browser: { immutablePath: string; integrity: string }
}

export function ClientPackage() {
  const manifest = useSignal<Manifest | null>(null)
  useEffect(() => {
    // The install command works without the manifest, so a failure is not shown.
    get<Manifest>('/sdk/manifest.json').then(
      (answer) => (manifest.value = answer),
      () => {},
    )
  }, [])
  const url = (session.value?.ingestUrl ?? ownAddress()).replace(/\/$/, '')
  const browser = manifest.value?.browser
  return (
    <section class="settings-section" aria-labelledby="client-package">
      <h3 id="client-package">Client package</h3>
      <p class="muted">
        Install the package from this server; no registry is needed. Its <code>README.md</code> has examples.
      </p>
      <CodeBlock
        text={`npm install ${url}/sdk/sightglass-sdk.tgz`}
        label="Install command"
        copyLabel="Copy command"
      />
      {browser && (
        <>
          <p class="muted">For a page without a bundler, with your server’s relay at /traces:</p>
          <CodeBlock
            text={pageSnippet(url + browser.immutablePath, browser.integrity)}
            label="Browser script"
            copyLabel="Copy script"
          />
        </>
      )}
    </section>
  )
}

function pageSnippet(url: string, integrity: string): string {
  return [
    `<link rel="modulepreload" href="${url}"`,
    `  integrity="${integrity}" crossorigin>`,
    '<script type="module">',
    `  import { createBrowserExporter, init } from '${url}'`,
    '  const client = init({',
    `    publishableKey: 'YOUR_PUBLISHABLE_KEY',`,
    `    siteId: 'my-site',`,
    `    exporters: [createBrowserExporter({ url: '/traces' })],`,
    '  })',
    `  client.trace({ type: 'tool.surfaced', metadata: { page: location.pathname } })`,
    '</script>',
  ].join('\n')
}
