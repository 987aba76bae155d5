/** Every exception to the rules, with its reason. One that is no longer needed fails the tidy test. */

export interface Exception {
  rule: string
  path: string
  why: string
}

export const exceptions: Exception[] = [
  {
    rule: 'barrel',
    path: 'server/cli/nouns.ts',
    why: 'a table of the commands, read as a namespace: one line per noun',
  },
  { rule: 'engine-words', path: 'db/open.ts', why: 'picks the engine' },
  { rule: 'engine-words', path: 'db/copy/thread.ts', why: 'picks the engine of both ends of a copy' },
  {
    rule: 'engine-words',
    path: 'db/sql/database.ts',
    why: 'names of the query builder, whose statements every engine runs',
  },
  { rule: 'engine-words', path: 'db/sql/identity/schema.ts', why: 'names of the query builder' },
  { rule: 'engine-words', path: 'db/sql/webhooks/schema.ts', why: 'names of the query builder' },
  { rule: 'engine-words', path: 'server/cli/option.ts', why: 'the URLs that --database accepts' },
  { rule: 'engine-words', path: 'server/cli/options.ts', why: 'help of --database for operators' },
  {
    rule: 'engine-words',
    path: 'server/cli/commands/backup.ts',
    why: 'help for operators, who open backups with other tools',
  },
  { rule: 'engine-words', path: 'server/cli/commands/copy.ts', why: 'URLs in examples for operators' },
  {
    rule: 'engine-words',
    path: 'server/operations/doctor/folder-checks.ts',
    why: 'the id and text of a check, which scripts of operators know',
  },
  {
    rule: 'engine-words',
    path: 'server/operations/metrics-endpoint/routes.ts',
    why: 'the name of a metric, which dashboards of operators know',
  },
  {
    rule: 'environment',
    path: 'db/postgres/connection/options.ts',
    why: 'the variables of libpq, which belong to the engine',
  },
  {
    rule: 'random',
    path: 'server/system/encryption.ts',
    why: 'the key of the data folder and nonces under it, not ids',
  },
  {
    rule: 'random',
    path: 'db/sql/settings/settings.ts',
    why: 'db/ may not import server/ids.ts; the secret never leaves the store',
  },
  {
    rule: 'leftover',
    path: 'server/demo/tools.github.json',
    why: 'data of others, kept word for word: a description uses the word as an example',
  },
  {
    rule: 'console',
    path: 'sdk/client/problem.ts',
    why: 'warns in the host program when it gave no onError',
  },
  {
    rule: 'stored-json',
    path: 'server/evidence/judged-record.ts',
    why: 'sample events, before they are stored',
  },
  {
    rule: 'stored-json',
    path: 'server/counts/details.ts',
    why: 'one event shown whole, and the few before it in its session',
  },
  {
    rule: 'stored-json',
    path: 'server/api/traces/export.ts',
    why: 'each event is parsed for its row of a CSV export, a page of at most 1 MiB at a time',
  },
  {
    rule: 'stored-json',
    path: 'server/evidence/judged-record.ts',
    why: 'sample events that this process has just made, which are not stored yet',
  },
  {
    rule: 'stored-json',
    path: 'server/sharing/content.ts',
    why: 'the newest 50 events, where a person chose to share them',
  },
  {
    rule: 'stored-json',
    path: 'server/parquet/events.ts',
    why: 'each event is parsed for its columns, on a thread of its own',
  },
  {
    rule: 'stored-json',
    path: 'server/api/registry/memory-routes.ts',
    why: 'two versions of one memory document, not events',
  },
  {
    rule: 'stored-json',
    path: 'server/mcp/event-tools.ts',
    why: 'at most 50 events of an answer, read as a page of at most 1 MiB',
  },
  {
    rule: 'stored-json',
    path: 'server/mcp/session-tools.ts',
    why: 'at most 100 events of an answer, read as a page of at most 1 MiB, and descriptors of tools',
  },
  { rule: 'stored-json', path: 'server/api/registry/record.ts', why: 'descriptors of tools, not events' },
  {
    rule: 'sliver',
    path: 'db/postgres/admin.ts',
    why: 'its verbs run on a reader thread, which must not import the store',
  },
  { rule: 'sliver', path: 'sdk/node.ts', why: 'the published entry of the package on Node.js and Bun' },
  {
    rule: 'sliver',
    path: 'sdk/platform/node-platform.ts',
    why: 'the counterpart of edge-platform.ts; public exports stay as they are',
  },
  { rule: 'sliver', path: 'server/cli/nouns.ts', why: 'the table of commands' },
]
