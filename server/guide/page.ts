/** Renders the operations guide (operations.md, then all options and commands) and further guides as pages. */
import accessLogsText from './access-logs.md' with { type: 'text' }
import proofText from '../audit/PROOF.md' with { type: 'text' }
import browserText from './browser.md' with { type: 'text' }
import frameworksText from './frameworks.md' with { type: 'text' }
import haproxy from './haproxy.cfg' with { type: 'text' }
import nginx from './nginx.conf' with { type: 'text' }
import languagesText from './languages.md' with { type: 'text' }
import mcpText from './mcp.md' with { type: 'text' }
import movingText from './moving.md' with { type: 'text' }
import nodesText from './nodes.md' with { type: 'text' }
import otlpText from './opentelemetry.md' with { type: 'text' }
import text from './operations.md' with { type: 'text' }
import go from './recipes/sightglass.go' with { type: 'text' }
import php from './recipes/sightglass.php' with { type: 'text' }
import python from './recipes/sightglass.py' with { type: 'text' }
import { configText, mcpClients } from '../mcp/clients.ts'
import { docsNavigation, framedPage, type PageOptions } from '../http/page-frame.ts'

export function operationsGuide(commandReference: string): string {
  return `${text}\n${commandReference}`
}

/** `commandReference` is Markdown: the command line's own tables of options and commands. */
export function guidePage(options: PageOptions, commandReference: string): string {
  return documentPage(options, operationsGuide(commandReference))
}

/** For operators of several nodes on one database, with the files of load balancers that tests start. */
export function nodesPage(options: PageOptions): string {
  return documentPage(options, nodesGuide())
}

export function nodesGuide(): string {
  return withFiles(nodesText, { 'haproxy.cfg': haproxy, 'nginx.conf': nginx }).replace(
    /^<!--.*-->\n\n/gm,
    '', // notes to whoever maintains the page
  )
}

/** Replaces each line `@name` by the file of this name as a code block. */
function withFiles(text: string, files: { [name: string]: string }): string {
  return text.replace(/^@(\S+)$/gm, (_, name: string) => `\`\`\`\n${files[name]!.trimEnd()}\n\`\`\``)
}

/** For people who connect programs, in Markdown, by the name of the page. */
const clientTexts = {
  browser: browserText,
  frameworks: frameworksText,
  opentelemetry: otlpText,
  'access-logs': accessLogsText,
  languages: withFiles(languagesText, {
    'sightglass.py': python,
    'sightglass.go': go,
    'sightglass.php': php,
  }),
  moving: movingText,
  mcp: withFiles(
    mcpText,
    Object.fromEntries(mcpClients.map((client) => [client, configText(client, { url: '@address/mcp' })])),
  ),
}

type ClientGuide = keyof typeof clientTexts

export const clientGuides = Object.keys(clientTexts) as ClientGuide[]

/** With the address that the reader reaches this server by. */
export function clientGuide(name: ClientGuide, address: string): string {
  return clientTexts[name].replaceAll('@address', () => address)
}

export function clientGuidePage(options: PageOptions, name: ClientGuide, address: string): string {
  return documentPage(options, clientGuide(name, address))
}

/** The format of audit proofs, with a verifier, for readers without the source. */
export function proofPage(options: PageOptions): string {
  return documentPage(options, proofText)
}

function documentPage(options: PageOptions, markdown: string): string {
  const { basePath } = options
  const { title, html, sections } = guideOf(markdown)
  const contents = sections.map(({ id, name }) => `<a href="#${id}">${Bun.escapeHTML(name)}</a>`).join('')
  const navigation = docsNavigation(basePath, title, `<h2>On this page</h2>${contents}`)
  const main = `<main class="guide">
${html.replaceAll('href="/', `href="${basePath}/`)}
</main>`
  return framedPage(options, { title, label: 'Guide', navigation, main })
}

interface Guide {
  title: string
  html: string
  sections: { id: string; name: string }[]
}

/** Converts the Markdown of our guides to HTML: headings, paragraphs, code, tables, lists, links. */
export function guideOf(markdown: string): Guide {
  const sections: Guide['sections'] = []
  let title = ''
  const html = blocksOf(markdown).map((block) => {
    const heading = /^(#{1,3}) (.+)$/.exec(block)
    if (heading === null) return blockHtml(block)
    const name = heading[2]!
    if (heading[1] === '#') {
      title = name
      return `<h1>${inline(name)}</h1>`
    }
    const id = name.toLowerCase().replace(/[^a-z0-9]+/g, '-')
    if (heading[1] === '###') return `<h3 id="${id}">${inline(name)}</h3>`
    sections.push({ id, name })
    return `<h2 id="${id}">${inline(name)}</h2>`
  })
  return { title, html: html.join('\n'), sections }
}

/** Splits at empty lines, except inside a code fence or an indented block. */
function blocksOf(markdown: string): string[] {
  const blocks: string[] = []
  let open: string[] = []
  let fenced = false
  for (const line of markdown.split('\n')) {
    if (line.startsWith('```')) fenced = !fenced
    const isCode = (text: string | undefined) => text !== undefined && /^ {4}/.test(text)
    if (line !== '' || fenced) open.push(line)
    else if (open.length > 0 && !isCode(open.at(-1))) {
      blocks.push(open.join('\n'))
      open = []
    } else if (open.length > 0) open.push(line)
    // A line without an indent ends an indented block.
    if (open.length > 1 && !fenced && !isCode(line) && line !== '' && isCode(open[0])) {
      blocks.push(open.slice(0, -1).join('\n').trimEnd())
      open = [line]
    }
  }
  if (open.length > 0) blocks.push(open.join('\n'))
  return blocks
}

function blockHtml(block: string): string {
  if (block.startsWith('```')) return code(block.split('\n').slice(1, -1).join('\n'))
  if (block.startsWith('    ')) return code(block.replace(/^ {4}/gm, '').trimEnd())
  if (block.startsWith('@keys ')) return keyMaker(block.slice('@keys '.length).split(' '))
  if (block.startsWith('|')) return table(block.split('\n'))
  if (block.startsWith('- ')) {
    const items = block.slice(2).split(/\n- /)
    return `<ul>${items.map((item) => `<li>${inline(item)}</li>`).join('')}</ul>`
  }
  if (block.startsWith('1. ')) {
    const items = block.slice(3).split(/\n\d+\. /)
    return `<ol>${items.map((item) => `<li>${inline(item)}</li>`).join('')}</ol>`
  }
  return `<p>${inline(block)}</p>`
}

/** Creates the keys of a guide where they are needed. Without a script, its links lead to Settings. */
/** Words with a colon are scopes of the secret key. */
function keyMaker(words: string[]): string {
  const [scopes = [], kinds = []] = [true, false].map((isScope) =>
    words.filter((word) => word.includes(':') === isScope),
  )
  const article = (kind: string) => (kind === 'ingest' ? 'an' : 'a')
  const places = kinds.map((kind) => {
    const page = kind === 'ingest' ? 'ingest-keys' : 'api-keys'
    return `${article(kind)} <a href="/settings/${page}">${kind} key</a>`
  })
  const isOne = kinds.length === 1
  const button = isOne ? `Create ${article(kinds[0]!)} ${kinds[0]} key` : 'Create the keys'
  const created = `the new ${isOne ? 'key, which is' : 'keys, which are'} not shown again.`
  const limits = scopes.length === 0 ? '' : ` data-scopes="${scopes.join(' ')}"`
  return `<div class="panel keys" data-keys="${kinds.join(' ')}"${limits} data-created="${created}">
<p>This guide needs ${new Intl.ListFormat('en').format(places)}. Owners and admins can create ${isOne ? 'it' : 'them'} here.</p>
<button class="button primary" type="button" hidden>${button}</button>
<p role="status"></p>
</div>`
}

function code(text: string): string {
  const escaped = Bun.escapeHTML(text)
  return `<div class="example"><pre tabindex="0">${escaped}</pre>
<button class="button" type="button" data-copy hidden>Copy</button></div>`
}

function table([head = '', , ...rows]: string[]): string {
  const cells = (line: string) =>
    line
      .replace(/^\||\|$/g, '')
      .split('|')
      .map((cell) => inline(cell.trim()))
  const headers = cells(head).map((cell) => `<th scope="col">${cell}</th>`)
  const body = rows.map(
    (row) =>
      `<tr>${cells(row)
        .map((cell) => `<td>${cell}</td>`)
        .join('')}</tr>`,
  )
  const content = `<thead><tr>${headers.join('')}</tr></thead><tbody>${body.join('')}</tbody>`
  return `<div class="table" tabindex="0"><table>${content}</table></div>`
}

/** A line does not end at the hyphens of an option. */
function codeHtml(code: string): string {
  const options = /(?<![^ ])--[a-z-]+/g
  return `<code>${Bun.escapeHTML(code).replace(options, '<span class="option">$&</span>')}</code>`
}

/** Splits off code first, so that nothing inside it is formatted. */
function inline(text: string): string {
  return text
    .split(/(`[^`]+`)/)
    .map((part) =>
      part.startsWith('`')
        ? codeHtml(part.slice(1, -1))
        : Bun.escapeHTML(part)
            .replace(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
            .replace(/\[([^\]]+)\]\(([#/][a-z0-9/#-]+)\)/g, '<a href="$2">$1</a>'),
    )
    .join('')
}
