/** The frame, style and script of the reference and the guide. Colours and sizes are the dashboard's tokens. */
import type { Assets } from './assets.ts'

export interface PageOptions {
  basePath: string // of the page's own links
  links: string[] // link elements of the dashboard's icon and style sheet
}

/** The guides by their path below /docs/, in the order of the navigation. */
const guideTitles = {
  operations: 'Operations guide',
  browser: 'Browser and WebMCP',
  frameworks: 'Node frameworks',
  opentelemetry: 'OpenTelemetry',
  'access-logs': 'Access logs',
  languages: 'Python, Go and PHP',
  moving: 'Move from another vendor',
  mcp: 'Ask with an assistant',
  nodes: 'Several nodes',
  proof: 'Audit proof format',
} as const

/** The pages under /docs. `contents` are the links within the open one. */
export function docsNavigation(basePath: string, open: string, contents: string): string {
  const pages = [
    ['', 'API reference'],
    ...Object.entries(guideTitles).map(([name, title]) => [`/${name}`, title]),
  ]
  const link = ([path = '', title = '']: string[]) =>
    `<a href="${basePath}/docs${path}"${title === open ? ' aria-current="page"' : ''}>${title}</a>`
  return `${pages.map(link).join('\n')}\n${contents}`
}

/** One HTML page without external resources; `navigation` and `main` are HTML. */
export function framedPage(
  { basePath, links }: PageOptions,
  page: { title: string; label: string; navigation: string; main: string },
): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${page.title} · Sightglass</title>
${links.join('\n')}
<link rel="stylesheet" href="${basePath}/docs/page.css">
<script src="${basePath}/docs/page.js" defer></script>
</head>
<body>
<div class="reference">
<nav aria-label="${page.label}"><a class="brand" href="${basePath}/">Sightglass</a>
${page.navigation}</nav>
${page.main}
</div>
</body>
</html>
`
}

/** The icon and the style sheet of the dashboard, whose colours and sizes these pages share. */
export function dashboardLinks(assets: Assets): string[] {
  const shell = assets.get('/index.html')?.bytes.get('identity')
  if (shell === undefined) return []
  return new TextDecoder().decode(shell).match(/<link rel="(?:icon|stylesheet)"[^>]*>/g) ?? []
}

export const pageStyle = `
.reference { display: grid; grid-template-columns: 260px minmax(0, 1fr); min-height: 100dvh; }
.reference > nav { position: sticky; top: 0; align-self: start; height: 100dvh; overflow-y: auto;
  padding: var(--s4) var(--s3) var(--s6); border-right: 1px solid var(--line); }
.reference > nav a { display: block; padding: 3px var(--s2); border-radius: var(--radius-small);
  color: var(--ink-2); text-decoration: none; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.reference > nav a:hover { background: var(--sunken); color: var(--ink); }
.reference > nav a[aria-current] { background: var(--sunken); color: var(--ink); font-weight: 550; }
.reference > nav .brand { color: var(--ink); font-weight: 620; font-size: var(--text-lead); }
.reference > nav h2 { margin: var(--s4) var(--s2) var(--s1); color: var(--ink-3); font-size: var(--text-label);
  font-weight: 550; }
.reference > main { display: grid; gap: var(--s5); max-width: 1040px; padding: var(--s5) var(--s5) var(--s7); }
.reference h1 { font-size: var(--text-title); }
.reference .docs-lead { max-width: 72ch; white-space: pre-line; color: var(--ink-2); margin-top: var(--s2); }
.operation { padding: var(--s4); scroll-margin-top: var(--s4); }
.operation > * + * { margin-top: var(--s3); }
.operation h2 { display: flex; flex-wrap: wrap; gap: var(--s2); align-items: baseline; }
.operation h2 code { color: var(--ink-2); font-weight: 400; }
.operation p { max-width: 72ch; color: var(--ink-2); }
.operation h3 { color: var(--ink-3); font-size: var(--text-label); font-weight: 550; }
.method { flex: none; padding: 1px 7px; border-radius: var(--radius-small); background: var(--accent-soft);
  color: var(--accent); font: 600 var(--text-small) / 1.6 var(--mono); }
.method.post, .method.patch { background: var(--review-soft); color: var(--review); }
.method.delete { background: var(--error-soft); color: var(--error); }
.table { overflow-x: auto; }
.operation table { width: 100%; border-collapse: collapse; }
.operation td { white-space: normal; vertical-align: top; overflow-wrap: break-word; min-width: 18ch; }
.operation td:first-child, .operation th:first-child { padding-left: 0; }
.operation td:first-child { white-space: nowrap; }
.example { position: relative; }
.example pre { overflow: auto; max-height: 420px; padding: 10px 12px; border-radius: var(--radius-small);
  background: var(--sunken); white-space: pre; tab-size: 4; overflow-wrap: normal; }
.example .button { position: absolute; top: 6px; right: 6px; min-height: 24px; padding: 1px 8px; }
summary { cursor: pointer; color: var(--ink-2); }
.reference > .guide { grid-template-columns: minmax(0, 1fr); }
.guide > * { max-width: 84ch; }
.guide > .table, .guide > .example { max-width: 100%; }
.guide h2 { margin-top: var(--s4); scroll-margin-top: var(--s4); }
.guide ul, .guide ol { padding-left: 2.2ch; list-style: disc; }
.guide ol { list-style: decimal; }
.guide p, .guide li { color: var(--ink-2); line-height: 1.6; }
.guide table { width: 100%; border-collapse: collapse; }
.guide .keys { display: grid; gap: var(--s3); justify-items: start; padding: var(--s4); }
.guide td code { overflow-wrap: anywhere; }
.guide .option { white-space: nowrap; }
.guide td { white-space: normal; vertical-align: top; overflow-wrap: break-word; min-width: 14ch; }
@media (max-width: 800px) {
  .reference { grid-template-columns: minmax(0, 1fr); }
  .reference > nav { position: static; height: auto; max-height: 40dvh; border-right: 0;
    border-bottom: 1px solid var(--line); }
  .reference > main { padding: var(--s4); }
  .example pre { padding-top: 40px; }
  .guide td .option { white-space: normal; }
}
@media print { .reference { display: block; }
  .reference > nav, .example .button, .keys .button { display: none; } }
`

/**
 * Applies the theme chosen in the dashboard, adds copy buttons, and creates the keys of a guide as the person who is
 * signed in to the dashboard. The pages can be read without it.
 */
export const pageScript = `
const theme = (() => { try { return localStorage.getItem('sightglass.theme') } catch { return null } })()
if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme

for (const button of document.querySelectorAll('button[data-copy]')) {
  button.hidden = false
  button.addEventListener('click', async () => {
    const text = button.parentElement.querySelector('pre').textContent
    const label = button.textContent
    try {
      await navigator.clipboard.writeText(text)
      button.textContent = 'Copied'
    } catch {
      // The clipboard needs https or localhost. Select the text, so that Ctrl-C copies it.
      getSelection().selectAllChildren(button.parentElement.querySelector('pre'))
      button.textContent = 'Press Ctrl+C'
    }
    setTimeout(() => { button.textContent = label }, 2000)
  })
}

const prefixes = { ingest: 'agtx_ik_', publishable: 'agtx_pk_', secret: 'agtx_sk_' }

async function call(path, body) {
  const base = document.querySelector('.brand').pathname
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(base + 'api/' + path, body && { method: 'POST', headers, body: JSON.stringify(body) })
  const found = await answer.json()
  if (!answer.ok) throw new Error(found.message)
  return found
}

for (const place of document.querySelectorAll('[data-keys]')) {
  const button = place.querySelector('button')
  const status = place.querySelector('[role=status]')
  const about = place.querySelector('p')
  const kinds = place.dataset.keys.split(' ')
  button.hidden = false
  button.addEventListener('click', async () => {
    button.disabled = true
    try {
      const { signedIn } = await call('setup')
      if (!signedIn) throw new Error('Sign in to the dashboard first, then click again.')
      const { role, org } = await call('session')
      if (role !== 'owner' && role !== 'admin')
        throw new Error('Only owners and admins can create keys. Ask one of them.')
      const label = 'Guide: ' + document.querySelector('h1').textContent
      while (kinds.length > 0) {
        const scopes = kinds[0] === 'secret' ? place.dataset.scopes?.split(' ') : undefined
        const { secret } = await call('keys', { kind: kinds[0], label, scopes })
        const placeholder = prefixes[kinds.shift()] + 'your-key'
        for (const block of document.querySelectorAll('.example pre'))
          block.textContent = block.textContent.replaceAll(placeholder, secret)
      }
      button.remove()
      about.remove()
      status.textContent = 'Created for the organization ' + org.name + ', labelled \u201c' + label + '\u201d. '
        + 'The examples on this page contain ' + place.dataset.created
    } catch (error) {
      status.textContent = error.message
      button.disabled = false
    }
  })
}
`
