/** What help says about the verbs of people, organizations, sites and the changing of keys. */
import type { VerbText } from './verb-text.ts'

export const identityTexts = {
  'account invite': {
    summary: 'print a one-time link (7 days) that makes its holder a member',
    usage: 'account invite --email EMAIL --role ROLE [--org ORG]',
    about: [
      'An older invitation of the same address ends. People who have an account use their password with it.',
    ],
    examples: ['sightglass account invite --email ann@example.com --role analyst'],
  },
  'account set-role': {
    summary: 'give a member another role; ends their sign-ins there',
    usage: 'account set-role --email EMAIL --role ROLE [--org ORG]',
    about: ['An organization keeps at least one owner.'],
    examples: ['sightglass account set-role --email ann@example.com --role owner'],
  },
  'account remove': {
    summary: 'take a member out of an organization; the account itself stays',
    usage: 'account remove --email EMAIL [--org ORG]',
    about: [],
    examples: ['sightglass account remove --email ann@example.com'],
  },
  'account make-operator': {
    summary: 'let an account run the appliance itself',
    usage: 'account make-operator --email EMAIL',
    about: ['Operators make organizations and backups, and see how the appliance does.'],
    examples: ['sightglass account make-operator --email ann@example.com'],
  },
  'account drop-operator': {
    summary: 'end that an account runs the appliance; one operator stays',
    usage: 'account drop-operator --email EMAIL',
    about: [],
    examples: ['sightglass account drop-operator --email ann@example.com'],
  },
  'account reset-second-factor': {
    summary: 'take away the second factor of somebody who lost app and recovery codes',
    usage: 'account reset-second-factor --email EMAIL',
    about: ['From then on the password alone signs in, until they set up a second factor again.'],
    examples: ['sightglass account reset-second-factor --email ann@example.com'],
  },
  'org rename': {
    summary: 'give an organization another name; its slug stays',
    usage: 'org rename --org ORG --name NAME',
    about: [],
    examples: ['sightglass org rename --org acme --name "Acme Group"'],
  },
  'org delete': {
    summary: 'have an organization deleted in seven days',
    usage: 'org delete --org ORG --confirm SLUG',
    about: [
      'Until then everything goes on and "org keep" takes it back. Then events, keys, webhooks and memberships are',
      'deleted for good; the audit trail stays.',
    ],
    examples: ['sightglass org delete --org acme --confirm acme'],
  },
  'org keep': {
    summary: 'take back the deletion of an organization',
    usage: 'org keep --org ORG',
    about: [],
    examples: ['sightglass org keep --org acme'],
  },
  'org sign-in-rule': {
    summary: 'require a second factor of the members of an organization, or stop requiring it',
    usage: 'org sign-in-rule --org ORG --second-factor required|optional',
    about: [
      'Members without one set it up when they next open the dashboard; until then the API answers 403. A sign-in through',
      'the identity provider counts as one with a second factor. "optional" is the way back for who is locked out.',
    ],
    examples: ['sightglass org sign-in-rule --org acme --second-factor required'],
  },
  'site list': {
    summary: 'list the sites of an organization',
    usage: 'site list [--org ORG]',
    about: [],
    examples: ['sightglass site list'],
  },
  'site change': {
    summary: 'name, hide or restrict a site',
    usage: 'site change SITE_ID [--org ORG] [--name NAME] [--hidden yes|no] [--restricted yes|no]',
    about: ['Also before its first event. An empty name takes the name away.'],
    examples: ['sightglass site change shop-acme --name "Acme Shop" --restricted yes'],
  },
  'key rotate': {
    summary: 'make a successor of a key; the old one works on for a while',
    usage: 'key rotate KEY_ID [--overlap SPAN] [--org ORG]',
    about: ['The successor has the same label, sites and scopes. It is shown once.'],
    examples: ['sightglass key rotate key_3q2uVbkz0c5mYw1n8sJx4A --overlap 7d'],
  },
  'key change': {
    summary: 'change the label, sites, scopes or proxy mark of a key in use',
    usage: 'key change KEY_ID [--label TEXT] [--site ID …] [--scope SCOPE …] [--behind-proxy]',
    about: ['What is not named stays. --site= and --scope= with nothing after it take the limits away.'],
    examples: ['sightglass key change key_3q2uVbkz0c5mYw1n8sJx4A --site shop-acme,shop-beta'],
  },
} satisfies { [verb: string]: VerbText }
