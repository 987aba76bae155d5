/** Settings: the list of sections and the one that the address names. */
import './page.css'
import './identity.css'
import type { VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { PageBar } from '../../components/page-bar.tsx'
import { path } from '../../router.ts'
import { Account } from './account.tsx'
import { AuditLog } from './audit.tsx'
import { Backups } from './backups.tsx'
import { ClientPackage } from './client-package.tsx'
import { Data } from './data.tsx'
import { IngestHealth } from './ingest-health.tsx'
import { KeySection } from './key-section.tsx'
import { Organization } from './organization.tsx'
import { People } from './people.tsx'
import { Sites } from './sites.tsx'
import { System } from './system.tsx'
import { Webhooks } from './webhooks.tsx'

interface Section {
  slug: string
  name: string
  draw: () => VNode
}

const ingestKeys =
  'An ingest key lets your backend send events, tools and site memory. It is secret: it stays on your server and ' +
  'never reaches a browser.'

const apiKeys =
  'A secret key reads traces, metrics, sessions and the audit log, and works webhooks. A publishable key names your ' +
  'organization in a browser SDK and opens nothing.'

const sections: Section[] = [
  {
    slug: 'ingest-keys',
    name: 'SDK ingest keys',
    draw: () => (
      <>
        <KeySection key="ingest" kinds={['ingest']} about={ingestKeys} />
        <ClientPackage />
      </>
    ),
  },
  {
    slug: 'api-keys',
    name: 'API keys',
    draw: () => <KeySection key="api" kinds={['secret', 'publishable']} about={apiKeys} />,
  },
  { slug: 'ingest-health', name: 'Ingest health', draw: () => <IngestHealth /> },
  { slug: 'sites', name: 'Sites', draw: () => <Sites /> },
  { slug: 'webhooks', name: 'Webhooks', draw: () => <Webhooks /> },
  { slug: 'people', name: 'People', draw: () => <People /> },
  { slug: 'organization', name: 'Organization', draw: () => <Organization /> },
  { slug: 'audit', name: 'Audit log', draw: () => <AuditLog /> },
  { slug: 'data', name: 'Data and retention', draw: () => <Data /> },
  { slug: 'backups', name: 'Backups', draw: () => <Backups /> },
  { slug: 'system', name: 'System', draw: () => <System /> },
  { slug: 'account', name: 'Your account', draw: () => <Account /> },
]

export default function SettingsPage() {
  const slug = path.value.split('/')[2] ?? ''
  const section =
    sections.find((candidate) => candidate.slug === slug) ?? (slug === '' ? sections[0] : undefined)
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
          {sections.map((candidate) => (
            <a href={`/settings/${candidate.slug}`} aria-current={candidate === section ? 'page' : undefined}>
              {candidate.name}
            </a>
          ))}
        </nav>
        <div class="settings-body">
          {section ? (
            <>
              <h2>{section.name}</h2>
              {section.draw()}
            </>
          ) : (
            <p>There is no such section. Choose one from the list.</p>
          )}
        </div>
      </div>
    </>
  )
}
