/** Renders the API reference at /docs. */
import { docsNavigation, framedPage, type PageOptions } from '../http/page-frame.ts'
import { errorsOf, statusIn, type Answer, type Operation } from './operation-model.ts'
import { operations } from './openapi.ts'
import { webhookMessages, type WebhookMessage } from './webhook-messages-model.ts'
import type { Schema } from '../http/validate.ts'

export interface ReferenceOptions extends PageOptions {
  about: string
  version: string
  baseUrl: string // of the curl examples
}

export function referencePage({
  about: introduction,
  version,
  baseUrl,
  basePath,
  links,
}: ReferenceOptions): string {
  const tags = [...new Set(operations.map(({ tag }) => tag))]
  const link = ({ id, summary }: Operation) => `<a href="#${id}">${escape(summary)}</a>`
  const contents = tags
    .map((tag) => {
      const links = operations.filter((operation) => operation.tag === tag).map(link)
      return `<h2>${escape(tag)}</h2>${links.join('')}`
    })
    .join('')
  const messages = webhookMessages.map(({ type }) => `<a href="#${type}">${escape(type)}</a>`).join('')
  const parts = `<a href="#client-package">Client package</a>${contents}\n<h2>Webhook messages</h2>${messages}`
  const navigation = docsNavigation(basePath, 'API reference', parts)
  const main = `<main>
<header>
<h1>API reference</h1>
<p class="docs-lead">${escape(introduction)}</p>
<p class="docs-lead">Version ${escape(version)}. Also as <a href="${basePath}/openapi.json">OpenAPI 3.1</a>.</p>
</header>
<section class="panel operation" id="client-package" aria-labelledby="client-package-title">
<h2 id="client-package-title">Client package</h2>
<p>This appliance serves the package <code>@sightglass/sdk</code> for Node.js and for pages.</p>
${example('npm', `npm install ${baseUrl}/sdk/sightglass-sdk.tgz`, 'Copy command')}
<p>A page without a bundler imports <code>${escape(baseUrl)}/sdk/browser.js</code>. The immutable address and its
integrity value are in <a href="${basePath}/sdk/manifest.json">/sdk/manifest.json</a>.
<code>/sdk/webmcp.js</code> records WebMCP from the top of a page.
<a href="${basePath}/sdk/evidence.json">/sdk/evidence.json</a> is the evidence pack in force, with its signature.</p>
</section>
${operations.map((operation) => operationSection(operation, baseUrl)).join('\n')}
${webhookMessages.map(messageSection).join('\n')}
</main>`
  return framedPage({ basePath, links }, { title: 'API reference', label: 'Reference', navigation, main })
}

function operationSection(operation: Operation, baseUrl: string): string {
  const { id, method, path, summary, about: description, key, scope, body } = operation
  const keyText = {
    none: 'Needs no key.',
    ingest: 'Needs an ingest key.',
    secret: `Needs a secret key with ${scope === undefined ? 'any scope' : `the scope ${scope}`}.`,
  }[key]
  return `<section class="panel operation" id="${id}" aria-labelledby="${id}-title">
<h2 id="${id}-title"><span class="method ${method}">${method.toUpperCase()}</span> ${escape(summary)}
<code>${escape(path)}</code></h2>
<p>${escape(description === undefined ? keyText : `${description} ${keyText}`)}</p>
${parameterTable(operation)}
${body === undefined ? '' : details('Body', rowTable(schemaRows(body.schema)))}
${example('curl', curlText(operation, baseUrl), 'Copy as curl')}
${Object.entries(operation.answers)
  .map(([status, answer]) => answerBlock(status, answer))
  .join('\n')}
${details('Errors', errorTable(operation))}
</section>`
}

function messageSection({ type, summary, about: description, schema, examples }: WebhookMessage): string {
  const shown = examples.map((value) => example('message', JSON.stringify(value, null, 2), 'Copy')).join('\n')
  return `<section class="panel operation" id="${type}" aria-labelledby="${type}-title">
<h2 id="${type}-title"><span class="method post">POST</span> ${escape(summary)} <code>${escape(type)}</code></h2>
<p>${escape(description)}</p>
${details('Body', rowTable(schemaRows(schema)))}
${shown}
</section>`
}

function parameterTable({ params = {}, query = {} }: Operation): string {
  const rows = [
    ...Object.entries(params).map(([name, { description }]) => [name, 'path', description]),
    ...Object.entries(query).map(([name, { schema, repeats, description }]) => [
      name,
      repeats === true ? `${typeText(schema)}, repeatable` : typeText(schema),
      description,
    ]),
  ]
  return rows.length === 0 ? '' : table(['Parameter', 'Type', 'Description'], rows)
}

function answerBlock(status: string, answer: Answer | Answer[]): string {
  return (Array.isArray(answer) ? answer : [answer])
    .map(({ description, type = 'application/json', schema, example: value }) => {
      const shown =
        value === undefined
          ? ''
          : example('response', typeof value === 'string' ? value : JSON.stringify(value, null, 2), 'Copy')
      const rows = schema === undefined ? [] : schemaRows(schema)
      const title = `${status} ${description}${type === 'application/json' ? '' : ` (${type})`}`
      return details(title, `${rows.length === 0 ? '' : rowTable(rows)}${shown}`)
    })
    .join('\n')
}

function errorTable(operation: Operation): string {
  const codes = errorsOf(operation).map((code) => [String(statusIn(operation, code)), code])
  return table(['Status', 'Code'], codes.sort())
}

function rowTable(rows: SchemaRow[]): string {
  return table(
    ['Field', 'Type', 'Description'],
    rows.map(({ name, type, required, description }) => [
      name,
      required ? type : `${type}, optional`,
      description,
    ]),
  )
}

function table(heads: string[], rows: string[][]): string {
  const head = heads.map((text) => `<th scope="col">${escape(text)}</th>`).join('')
  const line = ([name = '', ...otherCells]: string[]) =>
    `<tr><td><code>${escape(name)}</code></td>${otherCells.map((cell) => `<td>${escape(cell)}</td>`).join('')}</tr>`
  const body = rows.map(line).join('')
  return `<div class="table" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`
}

function details(title: string, inside: string): string {
  return inside === ''
    ? `<p>${escape(title)}</p>`
    : `<details><summary>${escape(title)}</summary>${inside}</details>`
}

function example(label: string, text: string, button: string): string {
  return `<div class="example"><pre tabindex="0" aria-label="${label}">${escape(text)}</pre>
<button class="button" type="button" data-copy hidden>${button}</button></div>`
}

function escape(text: string): string {
  return Bun.escapeHTML(text)
}

/** Keys are shell variables, so that they do not end up in the shell history. */
const keyVariable = { ingest: 'SIGHTGLASS_INGEST_KEY', secret: 'SIGHTGLASS_SECRET_KEY' } as const

function curlText(operation: Operation, baseUrl: string): string {
  const { method, key, body } = operation
  const lines = [`curl ${shellWord(baseUrl + exampleAddress(operation))}`]
  if (method !== 'get' && !(method === 'post' && body !== undefined)) lines.push(`-X ${method.toUpperCase()}`)
  if (key !== 'none') lines.push(`-H "authorization: Bearer $${keyVariable[key]}"`)
  if (body !== undefined) {
    const { type = 'application/json', example } = body
    const bodyText = typeof example === 'string' ? example : JSON.stringify(example)
    lines.push(`-H 'content-type: ${type}'`, `-d ${shellWord(bodyText)}`)
  }
  return lines.join(' \\\n  ')
}

/** The path and query with the example values of their parameters. */
function exampleAddress({ path, params = {}, query = {} }: Operation): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(params[name]?.example ?? name),
  )
  const search = new URLSearchParams()
  for (const [name, { example }] of Object.entries(query))
    if (example !== undefined) search.set(name, example)
  return search.size === 0 ? filled : `${filled}?${search}`
}

/** Quotes text as one word of a POSIX shell. */
function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

interface SchemaRow {
  name: string // dotted; [] for the items of a list
  type: string
  required: boolean
  description: string
}

const depthMax = 4

function schemaRows(schema: Schema, prefix = '', depth = 0): SchemaRow[] {
  const inner = withoutNull(schema)
  if (depth >= depthMax) return []
  if (inner.type === 'array' && inner.items !== undefined) {
    return schemaRows(inner.items, `${prefix}[]`, depth)
  }
  return Object.entries(inner.properties ?? {}).flatMap(([name, field]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`
    const row = {
      name: path,
      type: typeText(field),
      required: inner.required?.includes(name) === true,
      description: descriptionOf(field),
    }
    return [row, ...schemaRows(field, path, depth + 1)]
  })
}

/** The schema behind a nullable one. */
function withoutNull(schema: Schema): Schema {
  const nonNullSchemas = schema.anyOf?.filter(({ type }) => type !== 'null') ?? []
  return nonNullSchemas.length === 1 && nonNullSchemas[0] !== undefined ? nonNullSchemas[0] : schema
}

function typeText(schema: Schema): string {
  const { anyOf, type, items, const: only, maxLength, minimum, maximum, maxItems } = schema
  if (anyOf !== undefined) return anyOf.map(typeText).join(' | ')
  if (only !== undefined) return JSON.stringify(only)
  if (type === 'array') {
    const limitText = maxItems === undefined ? '' : `, at most ${maxItems.toLocaleString('en-GB')}`
    return `list of ${items === undefined ? 'anything' : typeText(items)}${limitText}`
  }
  if (maxLength !== undefined) return `${type}, at most ${maxLength.toLocaleString('en-GB')} characters`
  if (minimum !== undefined && maximum !== undefined && maximum < 1e9)
    return `${type}, ${minimum} to ${maximum}`
  return type ?? 'anything'
}

function descriptionOf(schema: Schema): string {
  return (
    schema.description ??
    schema.anyOf?.find(({ description }) => description !== undefined)?.description ??
    ''
  )
}
