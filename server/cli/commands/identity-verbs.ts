/** The verbs around people, organizations, sites and keys in use: parameters from options, answers as text. */
import type { Json } from '../../../db/contract/store.ts'
import type { Invocation } from '../config.ts'
import { UsageError } from '../../errors.ts'
import type { OptionName, VerbName } from '../options.ts'
import { cell, rows, type DataVerb } from './data-verb.ts'
import { columns, oneLine } from '../print.ts'

function shown(value: Json | undefined): string {
  return oneLine(cell(value))
}

/** Null for what nobody gave: a change leaves that as it is. */
export function given({ settings }: Invocation, name: OptionName, value: Json): Json {
  return settings.some((each) => each.name === name && each.source !== 'default') ? value : null
}

function wordOf({ words }: Invocation, verb: VerbName, what: string): string {
  const [word] = words
  if (word === undefined)
    throw new UsageError(`"sightglass ${verb}" needs ${what}`, `sightglass help ${verb}`)
  return word
}

export const identityVerbs: { readonly [V in VerbName]?: DataVerb } = {
  'account invite': {
    writes: true,
    params: ({ values: { email, role, org } }) => ({ email, role, org }),
    text: ({ email, role, link }) =>
      `Send this link to ${shown(email)} (${shown(role)}); it works once, for 7 days:\n${shown(link)}`,
  },
  'account set-role': {
    writes: true,
    params: ({ values: { email, role, org } }) => ({ email, role, org }),
    text: ({ email, role }) => `${shown(email)} is ${shown(role)} now.`,
  },
  'account remove': {
    writes: true,
    params: ({ values: { email, org } }) => ({ email, org }),
    text: ({ email }) => `${shown(email)} is no longer a member.`,
  },
  'account make-operator': {
    writes: true,
    params: ({ values: { email } }) => ({ email }),
    text: ({ email }) => `${shown(email)} is operator of the appliance.`,
  },
  'account drop-operator': {
    writes: true,
    params: ({ values: { email } }) => ({ email }),
    text: ({ email }) => `${shown(email)} is no longer operator of the appliance.`,
  },
  'account reset-second-factor': {
    writes: true,
    params: ({ values: { email } }) => ({ email }),
    text: ({ email }) => `${shown(email)} signs in with the password alone now.`,
  },
  'org rename': {
    writes: true,
    params: ({ values: { org, name } }) => ({ org, name }),
    text: ({ slug, name }) => `The organization ${shown(slug)} is called ${shown(name)} now.`,
  },
  'org delete': {
    writes: true,
    params: ({ values: { org, confirm } }) => ({ org, confirm }),
    text: ({ slug, deletesAt }) =>
      [
        `The organization ${shown(slug)} will be deleted at ${shown(deletesAt)}.`,
        `To take it back: sightglass org keep --org ${shown(slug)}`,
      ].join('\n'),
  },
  'org keep': {
    writes: true,
    params: ({ values: { org } }) => ({ org }),
    text: ({ slug }) => `The organization ${shown(slug)} stays.`,
  },
  'org sign-in-rule': {
    writes: true,
    params: ({ values }) => ({ org: values.org, secondFactor: values['second-factor'] }),
    text: ({ slug, secondFactor }) =>
      `In the organization ${shown(slug)} a second factor is ${shown(secondFactor)}.`,
  },
  'site list': {
    writes: false,
    params: ({ values: { org } }) => ({ org }),
    text: ({ sites }) =>
      columns(
        ['SITE', 'NAME', 'HIDDEN', 'RESTRICTED', 'EVENTS'],
        rows(sites).map((site) => [
          cell(site['siteId']),
          cell(site['name']),
          site['hidden'] === true ? 'yes' : 'no',
          site['restricted'] === true ? 'yes' : 'no',
          site['seen'] === true ? 'yes' : 'none yet',
        ]),
      ),
  },
  'site change': {
    writes: true,
    params: (invocation) => {
      const { org, name, hidden, restricted } = invocation.values
      const siteId = wordOf(invocation, 'site change', 'the id of the site')
      return { siteId, org, name: given(invocation, 'name', name), hidden, restricted }
    },
    text: ({ siteId, name, hidden, restricted }) =>
      [
        `The site ${shown(siteId)} has ${name === null ? 'no name' : `the name ${shown(name)}`},`,
        `is ${hidden === true ? 'hidden' : 'shown'}`,
        restricted === true ? 'and takes only keys that name it.' : 'and open to every ingest key.',
      ].join(' '),
  },
  'key rotate': {
    writes: true,
    params: (invocation) => {
      const id = wordOf(invocation, 'key rotate', 'the id of the key')
      const { org, overlap } = invocation.values
      return { id, org: given(invocation, 'org', org), overlap }
    },
    text: ({ key, kind, label, id }) =>
      [
        shown(key),
        '',
        `This is the ${shown(kind)} key "${shown(label)}" (${shown(id)}). It is not shown again: keep it now.`,
      ].join('\n'),
  },
  'key change': {
    writes: true,
    params: (invocation) => {
      const { org, label, site, scope } = invocation.values
      const id = wordOf(invocation, 'key change', 'the id of the key')
      return {
        id,
        org: given(invocation, 'org', org),
        label: given(invocation, 'label', label),
        site: given(invocation, 'site', site),
        scope: given(invocation, 'scope', scope),
        behindProxy: given(invocation, 'behind-proxy', invocation.values['behind-proxy']),
      }
    },
    text: ({ kind, label, id }) => `Changed the ${shown(kind)} key "${shown(label)}" (${shown(id)}).`,
  },
}
