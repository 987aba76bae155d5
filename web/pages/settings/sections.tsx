/** The sections of Settings, in order, for the page and the command palette. */

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
