/** `sightglass site`: lists, names, hides and restricts sites. */
import { UsageError } from '../../errors.ts'
import { changeSite } from '../../identity/organizations/organizations.ts'
import { textOf, textOrNull } from '../../runtime/work.ts'
import { given, type Noun } from '../command.ts'
import { dataCommand, machineIn } from '../data-command.ts'
import { choice, text } from '../option.ts'
import { orgOption } from '../options.ts'
import { cell, table } from '../print.ts'

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
        return { sites: (await store.sites.list(orgId)).map((each) => ({ ...each })) }
      },
      print: ({ sites }) =>
        table(
          sites,
          'No sites. A site appears with its first event, or with "sightglass site change".',
          ['SITE', 'NAME', 'HIDDEN', 'RESTRICTED', 'EVENTS'],
          ({ siteId, name, hidden, restricted, seen }) => [
            cell(siteId),
            cell(name),
            yesNo(hidden),
            yesNo(restricted),
            yesNo(seen),
          ],
        ),
    }),
    dataCommand({
      name: 'site change',
      summary: 'name, hide or restrict a site',
      arguments: 'SITE_ID',
      about: ['Works before the first event of the site. An empty name removes the name.'],
      examples: ['sightglass site change shop-acme --name "Acme Shop" --restricted yes'],
      options: {
        ...orgOption,
        name: text('NAME', 'name of the site'),
        hidden: choice(['yes', 'no'], 'hide the site in the dashboard; its events stay'),
        restricted: choice(['yes', 'no'], 'accept events of the site only from ingest keys that name it'),
      },
      access: 'create',
      params(invocation) {
        const { words, values } = invocation
        const { org, name, hidden, restricted } = values
        if (words[0] === undefined)
          throw new UsageError('"sightglass site change" needs the id of a site', 'sightglass site list')
        return { siteId: words[0], org, name: given(invocation, 'name', name), hidden, restricted }
      },
      async work(context, params) {
        const who = await machineIn(context.store, params)
        const [name, hidden, restricted] = ['name', 'hidden', 'restricted'].map((each) =>
          textOrNull(params, each),
        )
        const changed = await changeSite(context, who, textOf(params, 'siteId'), {
          name: name ?? undefined,
          hidden: hidden === null ? undefined : hidden === 'yes',
          restricted: restricted === null ? undefined : restricted === 'yes',
        })
        return { ...changed }
      },
      print: ({ siteId, name, hidden, restricted }) =>
        [
          `Site ${cell(siteId)}: ${name === null ? 'no name' : `name ${cell(name)}`}`,
          hidden === true ? 'hidden' : 'visible',
          restricted === true ? 'accepts only ingest keys that name it.' : 'accepts every ingest key.',
        ].join(', '),
    }),
  ],
}

function yesNo(value: unknown): string {
  return value === true ? 'yes' : 'no'
}
