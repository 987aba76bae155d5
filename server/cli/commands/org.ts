/** `sightglass org` creates, lists, renames and deletes organizations; `sightglass site` manages their sites. */
import { isoTime } from '../../clock.ts'
import { AppError, UsageError } from '../../errors.ts'
import { hostsIn } from '../../identity/organizations/site-hosts.ts'
import {
  askDeletion,
  changeSignInRule,
  changeSite,
  deletionOf,
  isSlug,
  keepOrg,
  makeOrg,
  renameOrg,
  slugCharsMax,
  slugOf,
} from '../../identity/organizations/organizations.ts'
import { nameProblem } from '../../text/names.ts'
import { textOf, textOrNull, type Params } from '../../runtime/work.ts'
import { dataCommand, machineIn, requireOrg } from '../data-command.ts'
import { choice, text } from '../option.ts'
import { orgOption } from '../options.ts'
import { cell, minute, table } from '../print.ts'
import { explicitValue, type Noun } from '../command.ts'
import type { Json, Org } from '../../../db/contract/store.ts'

export const org: Noun = {
  group: 'People',
  commands: [
    dataCommand({
      name: 'org create',
      summary: 'create an organization',
      about: ['Organizations share the appliance; people, keys, events and audit trails are separate.'],
      examples: ['sightglass org create --name "Acme Shop" --slug acme'],
      options: {
        name: { ...text('NAME', 'name of the organization'), needed: true },
        slug: text('SLUG', 'slug for commands, by default derived from the name'),
      },
      access: 'create',
      params: ({ values: { name, slug } }) => ({ name, slug }),
      async work(context, params) {
        const name = readName(params)
        return orgView(await makeOrg(context, 'cli', { name, slug: readSlug(params, name) }))
      },
      print: ({ name, slug, id }) => `Created the organization ${cell(name)} (${cell(slug)}, ${cell(id)}).`,
    }),
    dataCommand({
      name: 'org list',
      summary: 'list the organizations',
      examples: ['sightglass org list'],
      options: {},
      access: 'read',
      params: () => ({}),
      work: async ({ store }) => ({ orgs: (await store.orgs.list()).map(orgView) }),
      print: ({ orgs }) =>
        table(
          orgs,
          'No organizations.',
          ['SLUG', 'NAME', 'ID', 'CREATED'],
          ({ slug, name, id, createdAt }) => [cell(slug), cell(name), cell(id), minute(createdAt)],
        ),
    }),
    dataCommand({
      name: 'org rename',
      summary: 'rename an organization; its slug stays',
      examples: ['sightglass org rename --org acme --name "Acme Group"'],
      options: { ...orgOption, name: { ...text('NAME', 'new name of the organization'), needed: true } },
      access: 'write',
      params: ({ values: { org: idOrSlug, name } }) => ({ org: idOrSlug, name }),
      async work(context, params) {
        const organization = await requireOrg(context.store, textOf(params, 'org'))
        const name = readName(params)
        const { id, slug } = await renameOrg(context, 'cli', organization, name)
        return { id, slug, name }
      },
      print: ({ slug, name }) => `Renamed the organization ${cell(slug)} to ${cell(name)}.`,
    }),
    dataCommand({
      name: 'org delete',
      summary: 'delete an organization in 7 days',
      about: [
        'The organization works as before for 7 days, and "org keep" cancels the deletion. Then its events, keys, webhooks and memberships are deleted permanently. Its audit trail remains.',
      ],
      examples: ['sightglass org delete --org acme --confirm acme'],
      options: {
        ...orgOption,
        confirm: {
          ...text('SLUG', 'slug of the organization again, as confirmation'),
          needed: true,
          flagOnly: true,
        },
      },
      access: 'write',
      params: ({ values: { org: idOrSlug, confirm } }) => ({ org: idOrSlug, confirm }),
      async work(context, params) {
        const organization = await requireOrg(context.store, textOf(params, 'org'))
        if (await deletionOf(context, organization.id))
          throw new AppError(
            'conflict',
            `The organization "${organization.slug}" is already scheduled for deletion.`,
            {
              hint: 'sightglass org keep',
            },
          )
        const { dueAtMs } = await askDeletion(context, 'cli', organization, textOf(params, 'confirm'))
        return { id: organization.id, slug: organization.slug, deletesAt: isoTime(dueAtMs) }
      },
      print: ({ slug, deletesAt }) =>
        [
          `The organization ${cell(slug)} will be deleted on ${cell(deletesAt)}.`,
          `To cancel: sightglass org keep --org ${cell(slug)}`,
        ].join('\n'),
    }),
    dataCommand({
      name: 'org keep',
      summary: 'cancel the deletion of an organization',
      examples: ['sightglass org keep --org acme'],
      options: orgOption,
      access: 'write',
      params: ({ values: { org: idOrSlug } }) => ({ org: idOrSlug }),
      async work(context, params) {
        const organization = await requireOrg(context.store, textOf(params, 'org'))
        if (!(await deletionOf(context, organization.id)))
          throw new AppError(
            'conflict',
            `The organization "${organization.slug}" is not scheduled for deletion.`,
          )
        await keepOrg(context, 'cli', organization)
        return { id: organization.id, slug: organization.slug }
      },
      print: ({ slug }) => `The organization ${cell(slug)} will not be deleted.`,
    }),
    dataCommand({
      name: 'org sign-in-rule',
      summary: 'require a second factor of the members of an organization, or make it optional',
      about: [
        'Members without a second factor set one up when they next open the dashboard; until then the API answers 403. A sign-in through the identity provider counts as one with a second factor. "optional" also helps a member who is locked out.',
      ],
      examples: ['sightglass org sign-in-rule --org acme --second-factor required'],
      options: {
        ...orgOption,
        'second-factor': {
          ...choice(['required', 'optional'], 'whether members need a second factor'),
          needed: true,
          flagOnly: true,
        },
      },
      access: 'write',
      params: ({ values }) => ({ org: values.org, secondFactor: values['second-factor'] }),
      async work(context, params) {
        const organization = await requireOrg(context.store, textOf(params, 'org'))
        const secondFactor = textOf(params, 'secondFactor')
        await changeSignInRule(context, 'cli', organization, {
          secondFactorRequired: secondFactor === 'required',
        })
        return { id: organization.id, slug: organization.slug, secondFactor }
      },
      print: ({ slug, secondFactor }) =>
        `The second factor is ${cell(secondFactor)} in the organization ${cell(slug)}.`,
    }),
  ],
}

function readName(params: Params): string {
  const name = textOf(params, 'name').trim()
  const problem = nameProblem(name)
  if (problem !== null) throw new UsageError(`the name of an organization ${problem}`)
  return name
}

function readSlug(params: Params, name: string): string {
  const slug = textOrNull(params, 'slug') ?? slugOf(name)
  if (isSlug(slug)) return slug
  throw new UsageError(
    slug === ''
      ? 'the name has no letters for a slug; give one with --slug'
      : `"${slug}" is not a valid slug`,
    `a slug has at most ${slugCharsMax} lower-case letters, digits and single dashes, such as acme-shop`,
  )
}

function orgView({ id, slug, name, createdAtMs }: Org): { [name: string]: Json } {
  return { id, slug, name, createdAt: isoTime(createdAtMs) }
}

export const site: Noun = {
  group: 'Sites and keys',
  commands: [
    dataCommand({
      name: 'site list',
      summary: 'list the sites of an organization',
      examples: ['sightglass site list'],
      options: orgOption,
      access: 'read',
      params: ({ values: { org } }) => ({ org }),
      async work({ store }, params) {
        const { orgId } = await machineIn(store, params)
        return { sites: (await store.sites.list(orgId)).map((storedSite) => ({ ...storedSite })) }
      },
      print: ({ sites }) =>
        table(
          sites,
          'No sites. A site appears with its first event, or with "sightglass site change".',
          ['SITE', 'NAME', 'HIDDEN', 'RESTRICTED', 'HOSTS', 'EVENTS'],
          ({ siteId, name, hidden, restricted, hosts, seen: hasEvents }) => [
            cell(siteId),
            cell(name),
            yesNo(hidden),
            yesNo(restricted),
            cell((hosts as string[]).join(' ')),
            yesNo(hasEvents),
          ],
        ),
    }),
    dataCommand({
      name: 'site change',
      summary: 'name, hide or restrict a site, or set its hosts',
      arguments: 'SITE_ID',
      about: [
        'Works before the first event of the site. An empty name removes the name, an empty list the hosts.',
        'A request that an agent signed counts only if it was signed for one of the hosts.',
      ],
      examples: [
        'sightglass site change shop-acme --name "Acme Shop" --restricted yes',
        'sightglass site change shop-acme --hosts shop.example,www.shop.example',
      ],
      options: {
        ...orgOption,
        name: text('NAME', 'name of the site'),
        hidden: choice(['yes', 'no'], 'hide the site in the dashboard; its events stay'),
        restricted: choice(['yes', 'no'], 'accept events of the site only from ingest keys that name it'),
        hosts: text('HOST,…', 'hosts of the site that signed requests may name, with their ports if unusual'),
      },
      access: 'write',
      params(invocation) {
        const { words, values } = invocation
        const { org, name, hidden, restricted, hosts } = values
        if (words[0] === undefined)
          throw new UsageError('"sightglass site change" needs the id of a site', 'sightglass site list')
        return {
          siteId: words[0],
          org,
          name: explicitValue(invocation, 'name', name),
          hidden,
          restricted,
          hosts: explicitValue(invocation, 'hosts', hosts),
        }
      },
      async work(context, params) {
        const actor = await machineIn(context.store, params)
        const [name, hidden, restricted, hosts] = ['name', 'hidden', 'restricted', 'hosts'].map((fieldName) =>
          textOrNull(params, fieldName),
        )
        const changed = await changeSite(context, actor, textOf(params, 'siteId'), {
          name: name ?? undefined,
          hidden: hidden === null ? undefined : hidden === 'yes',
          restricted: restricted === null ? undefined : restricted === 'yes',
          hosts: typeof hosts === 'string' ? hostsIn(hosts) : undefined,
        })
        return { ...changed }
      },
      print: ({ siteId, name, hidden, restricted, hosts }) =>
        [
          `Site ${cell(siteId)}: ${name === null ? 'no name' : `name ${cell(name)}`}`,
          hidden === true ? 'hidden' : 'visible',
          restricted === true ? 'accepts only ingest keys that name it.' : 'accepts every ingest key.',
          ...((hosts as string[]).length > 0 ? [`Hosts: ${(hosts as string[]).join(' ')}.`] : []),
        ].join(', '),
    }),
  ],
}

function yesNo(value: unknown): string {
  return value === true ? 'yes' : 'no'
}
