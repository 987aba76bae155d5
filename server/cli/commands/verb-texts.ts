/** What help says about each verb. */
import type { VerbName } from '../options.ts'
import { carryTexts } from './carry-texts.ts'
import { identityTexts } from './identity-texts.ts'
import { operateTexts } from './operate-texts.ts'
import type { VerbText } from './verb-text.ts'
import { webhookTexts } from './webhook-texts.ts'

export const verbTexts: { readonly [V in VerbName]: VerbText } = {
  serve: {
    summary: 'start the appliance (the same as no command at all)',
    usage: 'serve [--listen HOST:PORT] [--data-dir FOLDER] …',
    about: [
      'Opens the data folder (makes it when it is not there), answers until SIGTERM or Ctrl-C, and ends only when',
      'everything acknowledged is on disk. The first start prints a one-time link for the first owner; with',
      'SIGHTGLASS_ADMIN_EMAIL and SIGHTGLASS_ADMIN_PASSWORD set it creates the owner itself.',
    ],
    examples: [
      'sightglass',
      'sightglass serve --listen 0.0.0.0:7400 --public-url https://traces.example.com --trusted-proxy 10.0.0.0/8',
      'sightglass serve --config /etc/sightglass.toml',
    ],
  },
  'account create': {
    summary: 'create an account and give it a role in an organization',
    usage: 'account create --email EMAIL --role ROLE [--org ORG] [--password-stdin]',
    about: [
      'Without --password-stdin a one-time link is printed (30 minutes) with which its owner sets the password.',
      'The first account with the role owner also becomes the operator of the appliance.',
    ],
    examples: [
      'sightglass account create --email ann@example.com --role analyst',
      'sightglass account create --email ann@example.com --role owner --password-stdin < password.txt',
    ],
  },
  'account list': {
    summary: 'list the accounts and their roles',
    usage: 'account list',
    about: [],
    examples: ['sightglass account list --json'],
  },
  'account reset-password': {
    summary: 'print a one-time link (30 minutes) to set a new password',
    usage: 'account reset-password --email EMAIL',
    about: ['The old password works until the link is used; using it ends every sign-in of the account.'],
    examples: ['sightglass account reset-password --email ann@example.com'],
  },
  'org create': {
    summary: 'create an organization',
    usage: 'org create --name NAME [--slug SLUG]',
    about: [
      'Organizations share the appliance and nothing else: people, keys, events and audit trail are apart.',
    ],
    examples: ['sightglass org create --name "Acme Shop" --slug acme'],
  },
  'org list': {
    summary: 'list the organizations',
    usage: 'org list',
    about: [],
    examples: ['sightglass org list'],
  },
  'key create': {
    summary: 'create a key; it is shown once',
    usage: 'key create --kind KIND --label TEXT [--org ORG] [--site ID …] [--scope SCOPE …] [--expires TIME]',
    about: [
      'An ingest key writes events and stays on your server. A secret key reads through the gateway. A publishable key',
      'names the organization in a browser and opens nothing.',
    ],
    examples: [
      'sightglass key create --kind ingest --label "shop backend" --site shop-acme',
      'sightglass key create --kind secret --label export --scope traces:read --expires 90d --json',
    ],
  },
  'key list': {
    summary: 'list the keys of an organization',
    usage: 'key list [--org ORG] [--kind KIND]',
    about: [],
    examples: ['sightglass key list --kind ingest'],
  },
  'key revoke': {
    summary: 'revoke a key: the next request with it is refused',
    usage: 'key revoke KEY_ID',
    about: [],
    examples: ['sightglass key revoke key_3q2uVbkz0c5mYw1n8sJx4A'],
  },
  ...webhookTexts,
  demo: {
    summary: 'fill an organization with 30 days of demo traffic, or send it live',
    usage:
      'demo [--events COUNT] [--seed NUMBER] [--org ORG] | demo --live [--rate 5/s] [--url URL --key KEY]',
    about: [
      'Everything is marked: the site is demo-shop, each event carries metadata.demo = true, tools and site memory',
      'demo = true. "demo remove" takes it away again. --live posts through the public ingest endpoint like a backend of',
      'yours would, until Ctrl-C.',
    ],
    examples: ['sightglass demo', 'sightglass demo --live --rate 20/s', 'sightglass demo remove'],
  },
  'demo remove': {
    summary: 'remove all demo traffic of an organization',
    usage: 'demo remove [--org ORG]',
    about: ['Removes the events, tools and memory of the site demo-shop, and nothing else.'],
    examples: ['sightglass demo remove'],
  },
  'export audit': {
    summary: "write an organization's audit trail to a file",
    usage: 'export audit [--org ORG] [--format json|csv | --proof] [--out FILE]',
    about: [
      'With --proof the whole chain is written with its hashes and a signed head. /docs/proof of the appliance describes',
      'the form and has a verifier of thirty lines that needs nothing of Sightglass. The export itself is in the trail.',
    ],
    examples: [
      'sightglass export audit --format csv --out audit.csv',
      'sightglass export audit --org acme --proof --out acme-audit.jsonl',
    ],
  },
  verify: {
    summary: 'check that events, counts and the audit trail are as they were written',
    usage: 'verify [audit|events|FILE [--trusted-key KEY]]',
    about: [
      'Reads every event with its id and its places in the indexes, counts the rollups again, reads every audit chain row',
      'by row, its heads and the signed checkpoints, and names what was changed, moved or taken away. Changes nothing; a',
      'server may run meanwhile. About 10 s a million events. Exit code 1 when anything is not as written.',
      'With a FILE it checks an exported audit proof, from the file alone: no data folder, no network. The key that',
      'signed it should be one you know from elsewhere: an older export, or a checkpoint in a log.',
    ],
    examples: [
      'sightglass verify',
      'sightglass verify audit --json',
      'sightglass verify acme-audit.jsonl --trusted-key 7dJ…',
    ],
  },
  ...operateTexts,
  ...identityTexts,
  ...carryTexts,
  config: {
    summary: 'show the effective configuration and where each value came from',
    usage: 'config [options of serve]',
    about: ['Takes the options of serve, changes nothing, and hides secrets.'],
    examples: ['sightglass config --config /etc/sightglass.toml'],
  },
  version: {
    summary: 'print the version',
    usage: 'version',
    about: [],
    examples: ['sightglass version --json'],
  },
  help: {
    summary: 'explain the commands',
    usage: 'help [COMMAND]',
    about: [],
    examples: ['sightglass help key create'],
  },
}
