/** The operations guide has every option and command, its examples work, and the messages it explains exist. */
import { describe, expect, test } from 'bun:test'
import { Glob } from 'bun'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readArguments } from '../cli/arguments.ts'
import { commandReference } from '../cli/commands/help.ts'
import { commands } from '../cli/run.ts'
import { databaseUrl, environmentTwin, type Option } from '../cli/option.ts'
import { serveOptions } from '../cli/options.ts'
import { toolModels } from '../mcp/model.ts'
import { readSetupText } from '../operations/setup/file.ts'
import { clientGuide, clientGuidePage, clientGuides, guideOf, guidePage } from './page.ts'
import { nodesGuide, nodesPage, operationsGuide, proofPage } from './page.ts'

const guide = operationsGuide(commandReference(commands))

test('lists every option of serve and every command, and has a heading for each operator task', () => {
  for (const [name, option] of Object.entries<Option>(serveOptions))
    expect(guide).toContain(`| \`${option.environmentOnly ? environmentTwin(name) : `--${name}`}`)
  for (const { name } of commands) expect(guide).toContain(`| \`sightglass ${name}`)
  const names = guideOf(guide).sections.map(({ name }) => name)
  const headings = ['Install', 'TLS', 'Reverse proxy', 'Backup', 'Restore', 'Upgrade', 'Size']
  for (const name of [...headings, 'When something is wrong', 'Options of serve', 'Commands'])
    expect(names).toContain(name)
})

test('its setup file is valid', () => {
  const file = /```toml\n([\s\S]*?)```/.exec(guide)?.[1] ?? ''
  const [org] = readSetupText(file, 'guide', () => '').organizations
  expect(org).toMatchObject({ sites: [{ restricted: true }], keys: [{ kind: 'ingest' }], endpoints: [{}] })
})

test('every command line in the guide parses', () => {
  const clients = clientGuides.map((name) => clientGuide(name, 'http://a.example'))
  const lines = [
    ...[guide, nodesGuide(), ...clients].join('\n').matchAll(/^ {4}(?:sudo )?(?:\.\/)?sightglass (.*)$/gm),
  ].map(([, words = '']) => words)
  expect(lines.length).toBeGreaterThan(8)
  for (const line of lines) expect(() => readArguments(line.split(' '), commands)).not.toThrow()
})

test('every message the guides explain is in the source', () => {
  const root = join(import.meta.dir, '../..')
  const files = [...new Glob('{server,db}/**/*.ts').scanSync(root)].filter((path) => !path.includes('.test.'))
  const source = files
    .map((path) => readFileSync(join(root, path), 'utf8'))
    .join('\n')
    .toLowerCase()
  const table = guide.slice(guide.indexOf('## When something'), guide.indexOf('## Options of serve'))
  const accessLogs = clientGuide('access-logs', '')
  const missing = accessLogs.slice(accessLogs.indexOf('## When something'))
  const messagesOf = (text: string) =>
    [...text.matchAll(/^\| `([^`]+)`/gm)].map(([, message = '']) => message)
  expect([messagesOf(table).length > 15, messagesOf(missing).length]).toEqual([true, 8])
  const messages = [...messagesOf(table), ...messagesOf(missing)]
  for (const message of messages) {
    const parts = message.split(/…|: /).map((part) => part.trim().toLowerCase())
    for (const part of parts.filter((candidate) => candidate.length > 1))
      expect([message, source.includes(part)]).toEqual([message, true])
  }
})

test('the guide of several nodes names real variables, options, series and log lines', () => {
  const text = nodesGuide()
  expect(text).not.toMatch(/^@|<!--/m)
  const variables = [...text.matchAll(/\bSIGHTGLASS_[A-Z_]+/g)].map(([name]) => name)
  const options = commands.flatMap((command) => Object.keys(command.options))
  const twins = options.map(environmentTwin)
  expect(variables.filter((name) => !twins.includes(name))).toEqual([])
  const flags = [...text.matchAll(/`--([a-z-]+)/g)].map(([, name]) => name!)
  expect(flags.filter((name) => !options.includes(name))).toEqual([])
  const source = [
    '../operations/metrics-endpoint/routes.ts',
    '../operations/health/upkeep.ts',
    '../system/shared-node.ts',
  ]
    .map((path) => readFileSync(join(import.meta.dir, path), 'utf8'))
    .join('\n')
  const names = [...text.matchAll(/sightglass_([a-z_]+)|`(node_name_used_twice|upkeep_failed)`/g)]
  expect(names.length).toBeGreaterThan(5)
  for (const [, series, line] of names) expect(source).toContain(`'${series ?? line}'`)
  const roles = serveOptions['node-role'].help
  for (const [, role] of text.matchAll(/^\| `(\w+)` +\|/gm)) expect(roles + ' all').toContain(role!)
  for (const [, address] of text.matchAll(/"(postgres:[^"]+)"/g)) expect(databaseUrl(address!)).toBe(address!)
})

test('the guide of OpenTelemetry names what the tables have, and the address of its reader', () => {
  const text = clientGuide('opentelemetry', 'https://traces.example/sightglass')
  expect(text).toContain('OTEL_EXPORTER_OTLP_ENDPOINT=https://traces.example/sightglass\n')
  expect(text).not.toContain('@address')
  const folder = join(import.meta.dir, '../otlp')
  const source = ['conventions.ts', 'events.ts']
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('')
  const rows = text.slice(text.indexOf('## What becomes'), text.indexOf('- The site')).split('\n').slice(2)
  const rowNames = rows.flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map(([, name]) => name!))
  const names = rowNames.flatMap((name) => name.split('=')).filter((name) => !name.startsWith('--'))
  expect(names.length).toBeGreaterThan(20)
  for (const name of names) expect([name, source.includes(name)]).toEqual([name, true])
  const options = commands.flatMap((command) => Object.keys(command.options))
  for (const [, name] of text.matchAll(/`--([a-z-]+)/g)) expect(options).toContain(name!)
})

test('the guide of assistants has every tool, in order, and the scopes that they need', () => {
  const text = clientGuide('mcp', 'https://traces.example')
  const rows = [...text.matchAll(/^\| `([a-z_]+)` +\|/gm)].map(([, name]) => name)
  expect(rows.filter((name) => name !== undefined && name in toolModels)).toEqual(Object.keys(toolModels))
  const scopes = Object.values(toolModels).map(({ scope }) => scope)
  expect(scopes.filter((scope) => scope === 'metrics:read').length).toBe(3) // "the first three"
  expect(scopes.slice(0, 3)).toEqual(['metrics:read', 'metrics:read', 'metrics:read'])
  expect(text).toContain('"url": "https://traces.example/mcp"')
})

describe('the page', () => {
  test('prefixes every link with the base path and has no dead anchors', () => {
    const options = { basePath: '/sightglass', links: [] }
    const address = 'http://a.example'
    const clients = clientGuides.map((name) => clientGuidePage(options, name, address))
    for (const page of clients) expect(page).not.toMatch(/@address|^@(?:sightglass|keys)/m)
    for (const page of [guidePage(options, commandReference(commands)), nodesPage(options), ...clients])
      checkLinks(page.replace(/<pre[\s\S]*?<\/pre>/g, '')) // clients to copy have `**`
  })

  test('a key is offered where a guide needs it', () => {
    const page = (name: (typeof clientGuides)[number]) =>
      clientGuidePage({ basePath: '', links: [] }, name, '')
    for (const name of clientGuides) {
      const [, kinds = ''] = /data-keys="([a-z ]+)"/.exec(page(name)) ?? []
      const prefixes = { ingest: 'ik', publishable: 'pk', secret: 'sk' } as const
      for (const [kind, prefix] of Object.entries(prefixes))
        expect([name, kind, kinds.split(' ').includes(kind)]).toEqual([
          name,
          kind,
          page(name).includes(`agtx_${prefix}_your-key`),
        ])
    }
    expect(page('frameworks')).toContain('>Create the keys</button>')
  })

  function checkLinks(page: string): void {
    expect(
      [...page.matchAll(/(?:href|src)="(\/[^"]*)"/g)].every(([, to]) => to!.startsWith('/sightglass/')),
    ).toBe(true)
    const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
    expect(new Set(ids).size).toBe(ids.length)
    for (const [, id] of page.matchAll(/href="#([^"]+)"/g)) expect(ids).toContain(id!)
    expect(page).not.toMatch(/```|^ {4}sightglass|\*\*/m)
  }

  test('Markdown becomes escaped HTML', () => {
    const { html, title } = guideOf(
      '# A <b>\n\n### Part 1\n\nOne `a < b` and **two** with `--three N`.\n\n    x <y>\n\n    z\n\n| a | b |\n| - | - |\n| `1` | 2 |\n',
    )
    expect(title).toBe('A <b>')
    expect(html).toContain('<h1>A &lt;b&gt;</h1>')
    expect(html).toContain('<h3 id="part-1">Part 1</h3>')
    expect(html).toContain(
      '<p>One <code>a &lt; b</code> and <strong>two</strong> with <code><span class="option">--three</span> N</code>.</p>',
    )
    expect(html).toContain('<pre tabindex="0">x &lt;y&gt;\n\nz</pre>')
    expect(html).toContain('<th scope="col">a</th>')
    expect(html).toContain('<tr><td><code>1</code></td><td>2</td></tr>')
  })
})

test('each page under /docs marks its own place in the navigation', () => {
  const options = { basePath: '/base', links: [] }
  const pages = {
    operations: guidePage(options, ''),
    nodes: nodesPage(options),
    proof: proofPage(options),
    ...Object.fromEntries(clientGuides.map((name) => [name, clientGuidePage(options, name, '')])),
  }
  for (const [name, html] of Object.entries(pages)) {
    const marked = [...html.matchAll(/href="([^"]*)" aria-current="page"/g)].map(([, href]) => href)
    expect(marked).toEqual([`/base/docs/${name}`])
  }
})
