/** Renders the operations guide (operations.md, then all options and commands) and the audit proof format as pages. */
import { guideOf } from './markdown.ts'
import proofText from '../audit/PROOF.md' with { type: 'text' }
import text from './operations.md' with { type: 'text' }

export function operationsGuide(commandReference: string): string {
  return `${text}\n${commandReference}`
}

export interface GuidePageOptions {
  basePath: string
  links: string[] // link elements of the dashboard's icon and style sheet
}

/** `commandReference` is Markdown: the command line's own tables of options and commands. */
export function guidePage(options: GuidePageOptions, commandReference: string): string {
  return documentPage(options, operationsGuide(commandReference))
}

/** The format of audit proofs, with a verifier, for readers without the source. */
export function proofPage(options: GuidePageOptions): string {
  return documentPage(options, proofText)
}

function documentPage({ basePath, links }: GuidePageOptions, markdown: string): string {
  const { title, html, sections } = guideOf(markdown)
  const contents = sections.map(({ id, name }) => `<a href="#${id}">${Bun.escapeHTML(name)}</a>`).join('')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Sightglass</title>
${links.join('\n')}
<link rel="stylesheet" href="${basePath}/docs/page.css">
<script src="${basePath}/docs/page.js" defer></script>
</head>
<body>
<div class="reference">
<nav aria-label="Guide"><a class="brand" href="${basePath}/">Sightglass</a>
<a href="${basePath}/docs">API reference</a>
<a href="${basePath}/docs/operations">Operations guide</a>
<a href="${basePath}/docs/proof">Audit proofs</a>
${contents}</nav>
<main class="guide">
${html}
</main>
</div>
</body>
</html>
`
}
