/** The operations guide as one page: what is written in operations.md, then every option and every command. */
import { environmentTwin, optionFits, optionNames, optionOf, verbNames } from '../cli/options.ts'
import { verbTexts } from '../cli/commands/verb-texts.ts'
import { guideOf } from './markdown.ts'
import proofText from '../audit/PROOF.md' with { type: 'text' }
import text from './operations.md' with { type: 'text' }

/** The guide without a page around it; options and commands come from the tables that the program itself goes by. */
export function operationsGuide(): string {
  return `${text}\n${everyOption()}\n${everyCommand()}`
}

function everyOption(): string {
  const rows = optionNames
    .filter((name) => optionFits(name, 'serve'))
    .map((name) => {
      const { value, default: byDefault, help, environmentOnly } = optionOf(name)
      const flag = environmentOnly ? environmentTwin(name) : `--${name}${value === null ? '' : ` ${value}`}`
      return `| \`${inCell(flag)}\` | ${inCell(help)} | ${byDefault ? `\`${inCell(byDefault)}\`` : ''} |`
    })
  return `## Every option of serve

Each is an environment variable too (\`--data-dir\` is \`SIGHTGLASS_DATA_DIR\`), and a key of the TOML file that
\`--config\` names. A flag beats the environment, the environment beats the file. \`sightglass config\` shows what holds
and where it came from. A secret may come from a file, a systemd credential too: its variable with \`_FILE\` behind.

| option | what it is | without it |
| ------ | ---------- | ---------- |
${rows.join('\n')}
`
}

function everyCommand(): string {
  const rows = verbNames.map((verb) => {
    const { summary, usage } = verbTexts[verb]
    return `| \`sightglass ${inCell(usage)}\` | ${inCell(summary)} |`
  })
  return `## Every command

\`sightglass help COMMAND\` says more. With \`--json\` each answers one JSON value. Exit code 0: done. 1: refused or
failed. 2: not understood.

| command | what it does |
| ------- | ------------ |
${rows.join('\n')}
`
}

/** A bar would end the cell of a table. */
function inCell(text: string): string {
  return text.replaceAll('|', '/')
}

export interface GuidePageParts {
  basePath: string
  links: string[] // the link elements of the dashboard's own page: its icon and its style sheet
}

export function guidePage(parts: GuidePageParts): string {
  return documentPage(parts, operationsGuide())
}

/** The format of audit proofs, with a verifier: for whoever has the appliance but not its source. */
export function proofPage(parts: GuidePageParts): string {
  return documentPage(parts, proofText)
}

function documentPage({ basePath, links }: GuidePageParts, markdown: string): string {
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
