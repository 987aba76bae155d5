/** Writes a blocklist as configuration of nginx, Caddy or Apache, as robots.txt or as JSON, with its reasons. */
import type { AddressList } from '../../sdk/judge/evidence-pack.ts'
import { isoTime } from '../clock.ts'
import { UsageError } from '../errors.ts'
import type { BlockedAgent, Blocklist, KnownAgent, OutsideRule } from './blocklist.ts'

/** What the comments say. The same blocklist and facts make the same bytes. */
export interface BlocklistFacts {
  /** The command that makes the file. */
  command: string
  /** The days whose requests were counted, both inclusive: YYYY-MM-DD. */
  since: string
  until: string
}

type Writer = (blocklist: Blocklist, facts: BlocklistFacts) => string

/** Addresses that say nothing: the request came through a proxy or from the site itself. */
const privateNetworks = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '::1/128',
  'fc00::/7',
  'fe80::/10',
]

export const blocklistWriters = { nginx, caddy, apache, robots, json } satisfies { [format: string]: Writer }

function nginx(blocklist: Blocklist, facts: BlocklistFacts): string {
  const instructions = [
    'Include this file in the http block, and add to each server block:',
    '    if ($sightglass_blocked) { return 403; }',
    'Behind a proxy set real_ip_header and set_real_ip_from, because addresses are those of $remote_addr.',
  ]
  const { everywhere, outside } = blocklist
  const entry = (agents: KnownAgent[], value: string): string => `    "~*${patternOf(agents)}" ${value};`
  return lines([
    ...head(blocklist, facts, instructions).map(comment),
    ...outside.flatMap((rule, index) => [
      '',
      ...listComments(rule).map(comment),
      `geo $sightglass_outside_${index + 1} {`,
      '    default 1;',
      ...[...rule.networks, ...privateNetworks].map((network) => `    ${network} 0;`),
      '}',
    ]),
    '',
    'map $http_user_agent $sightglass_refused {',
    '    default 0;',
    ...everywhere.flatMap((agent) => [`    ${comment(agentComment(agent))}`, entry([agent], '1')]),
    ...outside.flatMap(({ agents, except }, index) => [
      ...except.map((agent) => entry([agent], '0')),
      ...agents.flatMap((agent) => [
        `    ${comment(agentComment(agent))}`,
        entry([agent], `$sightglass_outside_${index + 1}`),
      ]),
    ]),
    '}',
    '',
    comment(robotsStay),
    'map $uri $sightglass_blocked {',
    '    default $sightglass_refused;',
    '    /robots.txt 0;',
    '}',
  ])
}

function caddy(blocklist: Blocklist, facts: BlocklistFacts): string {
  const instructions = [
    'Import this file in a site block: import sightglass-blocklist.caddy',
    'Caddy runs handle and route blocks before respond, so import it inside those, too.',
    'Addresses are those of the connection. Behind a proxy, replace remote_ip by client_ip (Caddy 2.7 or newer).',
    robotsStay,
  ]
  const matcher = (
    name: string,
    agents: KnownAgent[],
    except: KnownAgent[],
    networks: string[],
  ): string[] => [
    `@${name} {`,
    '\tnot path /robots.txt',
    `\theader_regexp ${name} User-Agent \`(?i)${patternOf(agents)}\``,
    ...(except.length === 0 ? [] : [`\tnot header_regexp User-Agent \`(?i)${patternOf(except)}\``]),
    ...(networks.length === 0
      ? []
      : ['\tnot {', ...networks.map((network) => `\t\tremote_ip ${network}`), '\t}']),
    '}',
    `respond @${name} 403`,
  ]
  const { everywhere, outside } = blocklist
  return lines([
    ...head(blocklist, facts, instructions).map(comment),
    ...(everywhere.length === 0
      ? []
      : [
          '',
          ...everywhere.map(agentComment).map(comment),
          ...matcher('sightglass_everywhere', everywhere, [], []),
        ]),
    ...outside.flatMap((rule, index) => [
      '',
      ...[...rule.agents.map(agentComment), ...listComments(rule)].map(comment),
      ...matcher(`sightglass_outside_${index + 1}`, rule.agents, rule.except, [
        ...rule.networks,
        ...privateNetworks,
      ]),
    ]),
  ])
}

function apache(blocklist: Blocklist, facts: BlocklistFacts): string {
  const instructions = [
    'Include this file in the server configuration or in a VirtualHost. It needs mod_authz_core and mod_authz_host.',
    'It adds to the Require directives of the site. Behind a proxy use mod_remoteip.',
    robotsStay,
  ]
  const { everywhere, outside } = blocklist
  const indented = (comments: string[]): string[] => comments.map((line) => `        ${comment(line)}`)
  const notOf = (agents: KnownAgent[]): string =>
    `Require expr "%{HTTP_USER_AGENT} !~ m#${patternOf(agents)}#i"`
  // Apache's expressions have at most 8,191 characters.
  const groups = Array.from({ length: Math.ceil(everywhere.length / agentsPerExpression) }, (_, index) =>
    everywhere.slice(index * agentsPerExpression, (index + 1) * agentsPerExpression),
  )
  return lines([
    ...head(blocklist, facts, instructions).map(comment),
    '',
    '<LocationMatch "^/(?!robots\\.txt$)">',
    '    AuthMerging And',
    '    <RequireAll>',
    '        Require all granted',
    ...groups.flatMap((agents) => [...indented(agents.map(agentComment)), `        ${notOf(agents)}`]),
    ...outside.flatMap((rule) => [
      ...indented([...rule.agents.map(agentComment), ...listComments(rule)]),
      '        <RequireAny>',
      `            ${notOf(rule.agents)}`,
      ...(rule.except.length === 0 ? [] : [`            ${notOf(rule.except).replace('!~', '=~')}`]),
      ...[...rule.networks, ...privateNetworks].map((network) => `            Require ip ${network}`),
      '        </RequireAny>',
    ]),
    '    </RequireAll>',
    '</LocationMatch>',
  ])
}

const agentsPerExpression = 50

function robots(blocklist: Blocklist, facts: BlocklistFacts): string {
  if (blocklist.outside.length + blocklist.old.length > 0)
    throw new UsageError(
      'robots.txt has no addresses, so it cannot refuse unverified agents',
      'omit --unverified, or choose another format',
    )
  const instructions = ['Add this group to robots.txt. It only asks; a web server can refuse.']
  const agents = blocklist.everywhere.flatMap((agent) => [
    comment(agentComment(agent)),
    `User-agent: ${agent.name}`,
  ])
  return lines([...head(blocklist, facts, instructions).map(comment), '', ...agents, 'Disallow: /'])
}

function json({ everywhere, outside, old }: Blocklist, { command, since, until }: BlocklistFacts): string {
  const agentFacts = ({
    name,
    vendor,
    purpose,
    why: reason,
    requests,
    firstMs,
    lastMs,
    ...agent
  }: BlockedAgent) => ({
    name,
    vendor,
    purpose,
    why: reason,
    userAgentPattern: patternOf([agent]),
    requests,
    firstSeen: dayOf(firstMs),
    lastSeen: dayOf(lastMs),
  })
  const listFacts = ({ list, source, published, seen: seenDay }: AddressList) => ({
    list,
    source,
    published,
    seen: seenDay,
  })
  const document = {
    format: 'sightglass-blocklist-1',
    command,
    since,
    until,
    refuse: everywhere.map(agentFacts),
    refuseOutside: outside.map(({ vendor, agents, except, lists, networks }) => ({
      vendor,
      agents: agents.map(agentFacts),
      lists: lists.map(listFacts),
      exceptUserAgentPattern: except.length === 0 ? null : patternOf(except),
      networks: [...networks, ...privateNetworks],
    })),
    tooOld: old.map(listFacts),
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

const robotsStay =
  'Every agent may read /robots.txt: crawlers that cannot read it may fetch everything (RFC 9309).'

function head(
  { everywhere, outside, old }: Blocklist,
  facts: BlocklistFacts,
  instructions: string[],
): string[] {
  const agents = outside.flatMap((rule) => rule.agents).length
  return [
    `Generated by: ${facts.command}`,
    ...instructions,
    '',
    `Refuses ${count(everywhere.length, 'agent')} everywhere and ${count(agents, 'agent')} outside published networks.`,
    `Requests were counted from ${facts.since} to ${facts.until}.`,
    ...old.map((list) => `${sourceOf(list)}: too old to refuse other addresses.`),
  ]
}

function agentComment({
  name,
  vendor,
  purpose,
  why: reason,
  requests,
  firstMs,
  lastMs,
}: BlockedAgent): string {
  const days = firstMs === null ? '' : `, ${dayOf(firstMs)} to ${dayOf(lastMs)}`
  return `${name} of ${vendor} (${purpose}, ${reason}): ${count(requests, 'request')}${days}.`
}

function listComments({ vendor, lists }: OutsideRule): string[] {
  return [
    `Requests that claim to come from ${vendor} are refused unless their address is in one of these lists:`,
    ...lists.map((list) => `${sourceOf(list)}: ${count(list.networks.length, 'network')}.`),
  ]
}

const sourceOf = ({ list, source, published, seen: seenDay }: AddressList): string =>
  `List ${list} of ${published}, read ${seenDay} at ${source}`

const count = (number: number, noun: string): string =>
  `${number.toLocaleString('en-US')} ${noun}${number === 1 ? '' : 's'}`

const dayOf = (ms: number | null): string | null => (ms === null ? null : isoTime(ms).slice(0, 10))

/** A pack may come from anybody: no character of it may end the comment. */
const comment = (line: string): string => `# ${line.replaceAll(/[^\x20-\x7e]/g, '?')}`.trimEnd()

const lines = (texts: string[]): string => `${texts.join('\n')}\n`

/**
 * Matches the names of agents as whole words, a little wider than `detectAgent`: also in the path of an address, in
 * the name of a phone, and behind "like". Without backslashes and look-around, because the servers quote differently,
 * and the expressions of Caddy have no look-around.
 */
export function patternOf(agents: Pick<KnownAgent, 'texts'>[]): string {
  const names = agents.flatMap(({ texts }) =>
    texts.map((text) => {
      const escaped = text.replaceAll(/[^A-Za-z0-9 _-]/g, '[$&]')
      return /\w$/.test(text) ? `${escaped}([^A-Za-z0-9-]|$)` : escaped
    }),
  )
  return `(^|[^A-Za-z0-9-])(${names.join('|')})`
}
