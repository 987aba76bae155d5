/** Settings: the list of sections and the one that the address names. */
import './page.css'
import './identity.css'
import type { VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { PageBar } from '../../components/page-bar.tsx'
import { path } from '../../app/router.ts'
import { settingsSections, type SettingsSlug } from './sections.ts'
import { Account } from './account/account.tsx'
import { AuditLog } from './audit/audit.tsx'
import { Backups } from './system/backups.tsx'
import { ClientPackage } from './keys/client-package.tsx'
import { Data } from './data/data.tsx'
import { IngestHealth } from './ingest-health/ingest-health.tsx'
import { KeySection } from './keys/section.tsx'
import { Organization } from './organization/organization.tsx'
import { People } from './organization/people.tsx'
import { Sites } from './organization/sites.tsx'
import { System } from './system/system.tsx'
import { Webhooks } from './webhooks/webhooks.tsx'

const ingestKeys =
  'An ingest key lets your backend send events, tools and site memory. It is secret: it stays on your server and ' +
  'never reaches a browser.'

const apiKeys =
  'A secret key reads traces, metrics, sessions and the audit log, and works webhooks. A publishable key names your ' +
  'organization in a browser SDK and opens nothing.'

const drawn: { [slug in SettingsSlug]: () => VNode } = {
  'ingest-keys': () => (
    <>
      <KeySection key="ingest" kinds={['ingest']} about={ingestKeys} />
      <ClientPackage />
    </>
  ),
  'api-keys': () => <KeySection key="api" kinds={['secret', 'publishable']} about={apiKeys} />,
  'ingest-health': () => <IngestHealth />,
  sites: () => <Sites />,
  webhooks: () => <Webhooks />,
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
    // On a phone the list is one line that scrolls sideways.
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
              {drawn[section.slug]()}
            </>
          ) : (
            <p>There is no such section. Choose one from the list.</p>
          )}
        </div>
      </div>
    </>
  )
}
