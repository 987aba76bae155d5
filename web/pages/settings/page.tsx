/** The Settings page: the list of sections and the section named in the URL. */
import './page.css'
import './identity.css'
import type { VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { PageBar } from '../../components/page-frame.tsx'
import { path } from '../../app/router.ts'
import { settingsSections, type SettingsSlug } from './sections.tsx'
import { Account } from './account/account.tsx'
import { AuditLog } from './audit/audit.tsx'
import { Backups } from './system/backups.tsx'
import { ClientPackage, KeySection } from './keys/section.tsx'
import { Data } from './data/data.tsx'
import { EvidenceSection } from './evidence/evidence.tsx'
import { IngestHealth } from './ingest-health/ingest-health.tsx'
import { Organization } from './organization/organization.tsx'
import { People } from './organization/people.tsx'
import { ShareLinks } from './share-links/share-links.tsx'
import { Sites } from './organization/sites.tsx'
import { Sources } from './sources/sources.tsx'
import { System } from './system/system.tsx'
import { Webhooks } from './webhooks/webhooks.tsx'

const ingestKeys =
  'Ingest keys authenticate your backend when it sends events, tools and site memory. Keep them on your server.'

const apiKeys =
  'Secret keys read traces, metrics, sessions and the audit log, and manage webhooks. Publishable keys identify your ' +
  'organization in the browser SDK and grant no access.'

const sectionViews: { [slug in SettingsSlug]: () => VNode } = {
  'ingest-keys': () => (
    <>
      <KeySection key="ingest" kinds={['ingest']} about={ingestKeys} />
      <ClientPackage />
    </>
  ),
  'api-keys': () => (
    <>
      <KeySection key="api" kinds={['secret', 'publishable']} about={apiKeys} />
      <p class="muted">
        An assistant such as Claude connects with a secret key. See{' '}
        <a href="/docs/mcp" data-native>
          Ask with an assistant
        </a>
        .
      </p>
    </>
  ),
  'ingest-health': () => <IngestHealth />,
  sources: () => <Sources />,
  sites: () => <Sites />,
  evidence: () => <EvidenceSection />,
  webhooks: () => <Webhooks />,
  'share-links': () => <ShareLinks />,
  people: () => <People />,
  organization: () => <Organization />,
  audit: () => <AuditLog />,
  data: () => <Data />,
  backups: () => <Backups />,
  system: () => <System />,
  account: () => <Account />,
}

export default function SettingsPage() {
  const slug = path.value.split('/')[2] ?? ''
  const section =
    settingsSections.find((candidate) => candidate.slug === slug) ??
    (slug === '' ? settingsSections[0] : undefined)
  const list = useRef<HTMLElement>(null)
  useEffect(() => {
    // On a phone the list is one line that scrolls horizontally.
    list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [slug])
  return (
    <>
      <PageBar title="Settings" />
      <div class="settings">
        <nav aria-label="Settings" ref={list}>
          {settingsSections.map((candidate) => (
            <a href={`/settings/${candidate.slug}`} aria-current={candidate === section ? 'page' : undefined}>
              {candidate.name}
            </a>
          ))}
        </nav>
        <div class="settings-body">
          {section ? (
            <>
              <h2>{section.name}</h2>
              {sectionViews[section.slug]()}
            </>
          ) : (
            <p>Section not found. Choose one from the list.</p>
          )}
        </div>
      </div>
    </>
  )
}
