/** The sections of Settings, in order, for the page and the command palette, and the note about roles in them. */
import { session } from '../../app/session.ts'

export const settingsSections = [
  { slug: 'ingest-keys', name: 'SDK ingest keys' },
  { slug: 'api-keys', name: 'API keys' },
  { slug: 'ingest-health', name: 'Ingest health' },
  { slug: 'sources', name: 'Sources' },
  { slug: 'sites', name: 'Sites' },
  { slug: 'evidence', name: 'Evidence' },
  { slug: 'webhooks', name: 'Webhooks' },
  { slug: 'share-links', name: 'Share links' },
  { slug: 'people', name: 'People' },
  { slug: 'organization', name: 'Organization' },
  { slug: 'audit', name: 'Audit log' },
  { slug: 'data', name: 'Data and retention' },
  { slug: 'backups', name: 'Backups' },
  { slug: 'system', name: 'System' },
  { slug: 'account', name: 'Your account' },
] as const

export type SettingsSlug = (typeof settingsSections)[number]['slug']

/** Says which roles may see or change a section, to members of other roles. */
export function RoleNote({ text }: { text: string }) {
  return (
    <p class="muted">
      {text} Your role is {session.value?.role}.
    </p>
  )
}
