/** Renders the operations guide (operations.md, then all options and commands) and the audit proof format as pages. */
import { environmentTwin, optionFits, optionNames, optionOf, verbNames } from '../cli/options.ts'
import { verbTexts } from '../cli/commands/verb-texts.ts'
import { guideOf } from './markdown.ts'
import proofText from '../audit/PROOF.md' with { type: 'text' }
import text from './operations.md' with { type: 'text' }

/** The guide as Markdown. Options and commands come from the tables that the command line itself uses. */
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
  return `## Options of serve

Each option is also an environment variable (\`--data-dir\` is \`SIGHTGLASS_DATA_DIR\`) and a key of the TOML file in
\`--config\`. A flag overrides the environment, which overrides the file. \`sightglass config\` shows each value and its
source. To read a secret from a file, such as a systemd credential, append \`_FILE\` to its variable.

| Option | Description | Default |
| ------ | ---------- | ---------- |
${rows.join('\n')}
`
}

function everyCommand(): string {
  const rows = verbNames.map((verb) => {
    const { summary, usage } = verbTexts[verb]
    return `| \`sightglass ${inCell(usage)}\` | ${inCell(summary)} |`
  })
  return `## Commands

\`sightglass help COMMAND\` explains a command. With \`--json\` a command prints one JSON value. Exit codes: 0 success,
1 refused or failed, 2 invalid arguments.

| Command | Description |
| ------- | ----------- |
${rows.join('\n')}
`
}

/** A bar would end the table cell. */
function inCell(text: string): string {
  return text.replaceAll('|', '/')
}

export interface GuidePageOptions {
  basePath: string
  links: string[] // link elements of the dashboard's icon and style sheet
}

export function guidePage(options: GuidePageOptions): string {
  return documentPage(options, operationsGuide())
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
