/** What help says about the verbs that carry data out of the appliance and into it. */
import type { VerbText } from './verb-text.ts'

export const carryTexts = {
  'export traces': {
    summary: "write an organization's events to a file",
    usage: 'export traces [--org ORG] [--filter QUERY] [--format json|csv [--raw]] [--out FILE]',
    about: [
      'One event a line as it was sent, newest first, and a last line with the count, by which `import` knows that the file',
      'is whole. What arrives meanwhile is not in it. The export itself is in the audit trail.',
    ],
    examples: [
      'sightglass export traces --out events.ndjson',
      'sightglass export traces --org acme --filter "since=2026-06-01&type=authz.*&outcome=blocked" --format csv',
    ],
  },
  'export metrics': {
    summary: "write an organization's counts by hour to a file",
    usage: 'export metrics [--org ORG] [--filter QUERY] [--format json|csv] [--out FILE]',
    about: [
      'The answer of GET /v1/metrics, or its rows as a table. The export itself is in the audit trail.',
    ],
    examples: ['sightglass export metrics --filter "since=2026-06-01" --format csv --out metrics.csv'],
  },
  import: {
    summary: 'take events from a file that `export traces` wrote, or from any NDJSON',
    usage: 'import [FILE|-] [--org ORG]',
    about: [
      'Events pass the same checks as on the way through ingest; those whose id is known already are left as they are, so',
      'that the same file may be imported again. A file that was cut off or holds bad events ends with exit code 1, and',
      'says so; its good events are stored.',
    ],
    examples: [
      'sightglass import events.ndjson',
      'sightglass export traces --data-dir old | sightglass import --data-dir new -',
    ],
  },
  erase: {
    summary: 'take the events of a session or a subject out, for good',
    usage: 'erase [--org ORG] --session ID | --subject TEXT --yes',
    about: [
      'Takes out the events that carry it, their counts, and their copies in webhook deliveries and refused samples; a',
      'resend of them counts as deduped. The audit trail says that it was done and holds a keyed hash of the value. It',
      'cannot reach what arrives after it has begun, backups, what webhooks, sinks or exports carried away, and counts',
      'of hours past retention.',
    ],
    examples: [
      'sightglass erase --session sess_1 --yes',
      'sightglass erase --org acme --subject "mailto:ann@example.com" --yes --json',
    ],
  },
  openapi: {
    summary: 'print the OpenAPI document of the public API',
    usage: 'openapi',
    about: ['The same as GET /openapi.json of a running server; the reference for reading is at /docs.'],
    examples: ['sightglass openapi > sightglass.json'],
  },
} satisfies { readonly [verb: string]: VerbText }
