/** The options of what carries data out of the appliance and into it. */
import { option } from './option-form.ts'
import { flag, folderPath, oneOf, plainText } from './option-values.ts'

const exports = ['export audit', 'export traces', 'export metrics'] as const

export const carryOptions = {
  filter: option({
    read: plainText,
    value: 'QUERY',
    default: '',
    help: 'what to take, as a query of the gateway: "since=2026-06-01&type=authz.*"',
    verbs: ['export traces', 'export metrics'],
  }),
  format: option({
    ...oneOf('json', 'csv'),
    value: 'FORMAT',
    default: 'json',
    help: 'json (of traces: one event a line) or csv',
    verbs: exports,
  }),
  raw: option({
    read: flag,
    value: null,
    default: 'false',
    help: 'in CSV, leave cells that a spreadsheet would run as formulas as they are',
    verbs: ['export traces', 'export metrics'],
  }),
  proof: option({
    read: flag,
    value: null,
    default: 'false',
    help: 'write the whole chain, signed, in a form that others can check without Sightglass',
    verbs: ['export audit'],
  }),
  out: option({
    read: folderPath,
    value: 'FILE',
    default: null,
    help: 'where to write; left out: standard output',
    verbs: exports,
  }),
  session: option({
    read: plainText,
    value: 'ID',
    default: null,
    help: 'the session whose events go',
    verbs: ['erase'],
    flagOnly: true,
  }),
  subject: option({
    read: plainText,
    value: 'TEXT',
    default: null,
    help: 'the verified subject whose events go',
    verbs: ['erase'],
    flagOnly: true,
  }),
  yes: option({
    read: flag,
    value: null,
    default: 'false',
    help: 'replace what is there (a secret too), erase for good, or accept what is lost',
    verbs: ['accept-loss', ...exports, 'restore', 'erase', 'webhook secret', 'webhook rotate-secret'],
    flagOnly: true,
  }),
}
