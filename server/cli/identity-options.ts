/** The options around identity providers, organizations, sites and the replacing of keys. */
import { issuerAddress, oneOf, plainText } from './option-values.ts'
import { option } from './option-form.ts'

const serving = ['serve', 'config'] as const

export const identityOptions = {
  'oidc-issuer': option({
    read: issuerAddress,
    value: 'URL',
    default: null,
    help: 'lets people sign in through this OpenID Connect provider, beside their passwords',
    verbs: serving,
  }),
  'oidc-client-id': option({
    read: plainText,
    value: 'ID',
    default: null,
    help: 'how the provider knows Sightglass; its redirect address is <public-url>/api/oidc/callback',
    verbs: serving,
  }),
  'oidc-client-secret': option({
    read: plainText,
    value: 'SECRET',
    default: null,
    help: 'the secret agreed with the provider; left out: a public client with PKCE alone',
    verbs: serving,
    environmentOnly: true,
    secret: true,
  }),
  'oidc-name': option({
    read: plainText,
    value: 'NAME',
    default: 'single sign-on',
    help: 'what the button on the sign-in page names',
    verbs: serving,
  }),
  confirm: option({
    read: plainText,
    value: 'SLUG',
    default: null,
    help: 'the short name of the organization once more, so that nobody deletes one by a slip',
    verbs: ['org delete'],
    neededBy: ['org delete'],
    flagOnly: true,
  }),
  'second-factor': option({
    ...oneOf('required', 'optional'),
    value: 'required|optional',
    default: null,
    help: 'whether members need a second factor to see the data of the organization',
    verbs: ['org sign-in-rule'],
    neededBy: ['org sign-in-rule'],
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
    ...oneOf('yes', 'no'),
    value: 'yes|no',
    default: null,
    help: "leave the site out of the dashboard's choices; its events stay",
    verbs: ['site change'],
  }),
  restricted: option({
    ...oneOf('yes', 'no'),
    value: 'yes|no',
    default: null,
    help: 'take events of the site only from ingest keys that name it',
    verbs: ['site change'],
  }),
}
