/** The options around organizations, sites and the replacing of keys. */
import { oneOf, plainText } from './option-values.ts'
import { option } from './option-form.ts'

export const identityOptions = {
  confirm: option({
    read: plainText,
    value: 'SLUG',
    default: null,
    help: 'the short name of the organization once more, so that nobody deletes one by a slip',
    verbs: ['org delete'],
    neededBy: ['org delete'],
    flagOnly: true,
  }),
  overlap: option({
    read: plainText,
    value: 'SPAN',
    default: '24h',
    help: 'how long the old key works on: 0h, 12h, 7d',
    verbs: ['key rotate'],
  }),
  hidden: option({
    read: oneOf('yes', 'no'),
    value: 'yes|no',
    default: null,
    help: "leave the site out of the dashboard's choices; its events stay",
    verbs: ['site change'],
  }),
  restricted: option({
    read: oneOf('yes', 'no'),
    value: 'yes|no',
    default: null,
    help: 'take events of the site only from ingest keys that name it',
    verbs: ['site change'],
  }),
}
