/** The verbs around the data: their parameters out of the options, and their answers as text for people. */
import type { Json } from '../../../db/contract/store.ts'
import { systemClock } from '../../clock.ts'
import { listenText, reachableHost } from '../../http/address.ts'
import type { Invocation } from '../config.ts'
import { UsageError } from '../../errors.ts'
import type { OptionValues, VerbName } from '../options.ts'
import { cell, minute, rows, type Answer, type DataVerb } from './data-verb.ts'
import { openData } from '../../runtime/store-access.ts'
import { columns, oneLine } from '../print.ts'
import { logLevelVerb } from './log-level.ts'
import { eraseVerb } from './erase.ts'
import { backupCreateVerb } from './backup.ts'
import { clockConfirmVerb, clockVerb } from './clock.ts'
import { setupVerb } from './setup.ts'
import { given, identityVerbs } from './identity-verbs.ts'
import { webhookVerbs } from './webhook-verbs.ts'

export const dataVerbs: { readonly [V in VerbName]?: DataVerb } = {
  'backup create': backupCreateVerb,
  erase: eraseVerb,
  setup: setupVerb,
  'log-level': logLevelVerb,
  clock: clockVerb,
  'clock confirm': clockConfirmVerb,
  ...identityVerbs,
  'org create': {
    writes: true,
    params: ({ values: { name, slug } }) => ({ name, slug }),
    text: ({ name, slug, id }) => `Created the organization ${name} (${slug}, ${id}).`,
  },
  'org list': {
    writes: false,
    params: () => ({}),
    text: ({ orgs }) =>
      columns(
        ['SLUG', 'NAME', 'ID', 'CREATED'],
        rows(orgs).map((org) => [
          cell(org['slug']),
          cell(org['name']),
          cell(org['id']),
          minute(org['createdAt']),
        ]),
      ),
  },
  'account create': {
    writes: true,
    params: async ({ values }) => {
      const { email, role, org, operator } = values
      const password = values['password-stdin'] ? await passwordFromStdin() : null
      return { email, role, org, operator, password }
    },
    text: ({ email, role, operator, link }) => {
      const made = `Created the account ${email} (${role}${operator === true ? ', operator of the appliance' : ''}).`
      return link === null ? made : `${made}\n${linkText(link)}`
    },
  },
  'account list': {
    writes: false,
    params: () => ({}),
    text: ({ accounts }) =>
      columns(
        ['EMAIL', 'ROLES', 'OPERATOR', 'ID', 'CREATED'],
        rows(accounts).map((account) => [
          cell(account['email']),
          rows(account['memberships'] ?? [])
            .map(({ orgSlug, role }) => `${cell(orgSlug)}:${cell(role)}`)
            .join(' '),
          account['operator'] === true ? 'yes' : 'no',
          cell(account['id']),
          minute(account['createdAt']),
        ]),
      ),
  },
  'account reset-password': {
    writes: true,
    params: ({ values: { email } }) => ({ email }),
    text: ({ link }) => linkText(link),
  },
  'key create': {
    writes: true,
    params: ({ values }) => {
      const { kind, label, org, site, scope, expires } = values
      return { kind, label, org, site, scope, expires, behindProxy: values['behind-proxy'] }
    },
    text: ({ key, kind, label, id }) =>
      `${key}\n\nThis is the ${kind} key "${oneLine(String(label))}" (${id}). It is not shown again: keep it now.`,
  },
  'key list': {
    writes: false,
    params: ({ values: { org, kind } }) => ({ org, kind }),
    text: ({ keys }) =>
      columns(
        ['ID', 'KIND', 'LABEL', 'BEGINS', 'CREATED', 'LAST USED', 'STATE'],
        rows(keys).map((key) => [
          cell(key['id']),
          cell(key['kind']),
          cell(key['label']),
          `${cell(key['prefix'])}…`,
          minute(key['createdAt']),
          key['lastUsedAt'] === null ? 'never' : minute(key['lastUsedAt']),
          cell(key['state']),
        ]),
      ),
  },
  'key revoke': {
    writes: true,
    params: (invocation) => {
      const { values, words } = invocation
      const id = words[0] ?? values.id
      if (id === null)
        throw new UsageError('"sightglass key revoke" needs the id of the key', 'sightglass key list')
      return { id, org: given(invocation, 'org', values.org) }
    },
    text: ({ kind, label, id }) => `Revoked the ${kind} key "${oneLine(String(label))}" (${id}).`,
  },
  ...webhookVerbs,
}

/** Does the verb's work where it belongs and returns its answer. */
export async function runDataVerb(verb: VerbName, work: DataVerb, invocation: Invocation): Promise<Answer> {
  const params = await work.params(invocation)
  const data = await openData({
    ...dataPlace(invocation.values),
    create: (work.makesFolder ?? work.writes) && !invocation.values['dry-run'],
    onlyReads: !work.writes,
  })
  try {
    return (await data.call(verb, params)) as Answer
  } finally {
    await data.close()
  }
}

export function dataPlace(values: OptionValues) {
  const { host, ...listen } = values.listen
  const own = listen.unix === undefined ? listenText({ ...listen, host: reachableHost(host) }) : host
  const baseUrl = `${values['public-url'] ?? `http://${own}`}${values['base-path']}`
  return { dataDir: values['data-dir'], baseUrl, clock: systemClock }
}

async function passwordFromStdin(): Promise<string> {
  if (process.stdin.isTTY) throw new UsageError('--password-stdin reads a pipe or file, not the keyboard')
  // One newline at the end belongs to the file, not to the password.
  const password = (await Bun.stdin.text()).replace(/\r?\n$/, '')
  if (/[\r\n]/.test(password)) throw new UsageError('the password on standard input must be one line')
  return password
}

function linkText(link: Json | undefined): string {
  return `Open this link within 30 minutes to set the password; it works once:\n${cell(link)}`
}
