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
  {
    rule: 'environment',
    path: 'server/system/production.ts',
    why: 'must set NODE_ENV before any library reads it, and does nothing else',
  },
  {
    rule: 'random',
    path: 'server/system/secrets.ts',
    why: 'the key of the data folder and nonces under it, not ids',
  },
  {
    rule: 'random',
    path: 'db/sqlite/threads/write-verbs.ts',
    why: 'db/ may not import server/ids.ts; the secret never leaves the store',
  },
  {
    rule: 'leftover',
    path: 'server/demo/tools.github.json',
    why: 'data of others, kept word for word: a description uses the word as an example',
  },
  {
    rule: 'class',
    path: 'server/http/query.ts',
    why: 'reads a query step by step and remembers what was asked for',
  },
  {
    rule: 'console',
    path: 'sdk/client/problem.ts',
    why: 'warns in the host program when it gave no onError',
  },
  {
    rule: 'stored-json',
    path: 'server/dashboard/why.ts',
    why: 'one event shown whole, and the few before it in its session',
  },
  {
    rule: 'stored-json',
    path: 'server/api/traces/csv-columns.ts',
    why: 'each event is parsed for its row of a CSV export, a page of at most 1 MiB at a time',
  },
  {
    rule: 'stored-json',
    path: 'server/api/site-memory/routes.ts',
    why: 'two versions of one memory document, not events',
  },
  { rule: 'stored-json', path: 'server/api/tools/view.ts', why: 'descriptors of tools, not events' },
  { rule: 'stored-json', path: 'server/ingest/routes.ts', why: 'a request body, not a stored event' },
  {
    rule: 'barrel',
    path: 'server/webhooks/sinks/table.ts',
    why: 'the table of sink kinds: one line adds a kind',
  },
]
