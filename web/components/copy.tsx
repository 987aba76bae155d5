/** Text to copy: the button, a block of code with it, and the shell commands that the dashboard offers. */
import './copy.css'
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { FirstSource } from '../api/api.ts'
import { isoTime } from '../app/clock.ts'
import { escapeHidden } from './text.tsx'

const shownMs = 2_000

/** Shows whether copying worked. `text` may be a function if the text is expensive to build. */
export function CopyButton(props: { text: string | (() => string); label: string; primary?: boolean }) {
  const message = useSignal('')
  const timer = useSignal(0)
  useEffect(() => () => clearTimeout(timer.value), [])
  const copy = async (): Promise<void> => {
    const text = typeof props.text === 'string' ? props.text : props.text()
    message.value = (await copyText(text)) ? 'Copied' : 'Copy failed. Select the text.'
    clearTimeout(timer.value)
    timer.value = Number(setTimeout(() => (message.value = ''), shownMs))
  }
  return (
    <>
      <button type="button" class={props.primary ? 'button primary' : 'button'} onClick={() => void copy()}>
        {message.value || props.label}
      </button>
      <span class="visually-hidden" role="status">
        {message.value}
      </span>
    </>
  )
}

/** True if the text is on the clipboard. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyBySelection(text)
  }
}

function copyBySelection(text: string): boolean {
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'visually-hidden'
  // Inside an open dialog everything else is inert and cannot be selected.
  const home = document.querySelector('dialog:modal') ?? document.body
  const focused = document.activeElement
  home.append(field)
  field.select()
  const copied = document.execCommand('copy')
  field.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return copied
}

/** A block of code with a copy button. It scrolls instead of wrapping. */
export function CodeBlock(props: { text: string; copyLabel: string; label: string }) {
  return (
    <figure class="code-block">
      <pre tabIndex={0} role="group" aria-label={props.label}>
        {props.text}
      </pre>
      <figcaption>
        <CopyButton text={props.text} label={props.copyLabel} />
      </figcaption>
    </figure>
  )
}

/** Quotes a text as one word of a POSIX shell. */
function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** The command that sends events, split over several lines. */
export function sendCurl(url: string, key: string, body: string, path = '/v1/sdk/events'): string {
  return [
    `curl ${url.replace(/\/$/, '')}${path} \\`,
    `  -H 'authorization: Bearer ${key}' \\`,
    `  -H 'content-type: application/json' \\`,
    `  -d ${shellWord(escapeHidden(body))}`,
  ].join('\n')
}

/** A path as it is typed, in quotes only if it needs them. */
const pathWord = (path: string): string => (/^[\w./+:@-]+$/.test(path) ? path : shellWord(path))

/** The command that stores the agents of an access log, on the machine of the server. */
export function importLogCommand({ executable, dataDir, org, log }: FirstSource): string {
  return [
    `${pathWord(executable)} import access ${pathWord(log)} --site my-site`,
    ...(org === null ? [] : [`  --org ${org}`]),
    ...(dataDir === null ? [] : [`  --data-dir ${pathWord(dataDir)}`]),
  ].join(' \\\n')
}

export const keyPlaceholder = 'YOUR_INGEST_KEY'

const samples: { [prefix: string]: { type: string; fields: string } } = {
  agent: {
    type: 'agent.detected',
    fields:
      `"agent":{"class":"crawler","trust":"detected",` +
      `\n       "vendor":"OpenAI","name":"GPTBot","purpose":"training"}`,
  },
  auth: {
    type: 'auth.identity_presented',
    fields:
      `"agent":{"class":"webmcp","trust":"verified",` +
      `\n       "vendor":"Google","name":"Google-Agent"},` +
      `\n       "metadata":{"protocol":"web-bot-auth","subject":"agent.example"}`,
  },
  authz: {
    type: 'authz.evaluated',
    fields:
      `"tool":"checkout.pay","agent":{"class":"dom",` +
      `\n       "trust":"detected","vendor":"OpenAI","name":"Operator"},` +
      `\n       "policy":{"decision":"deny","ruleId":"tool:checkout.pay",` +
      `\n       "reason":"trust below verified"}`,
  },
  tool: {
    type: 'tool.executed',
    fields:
      `"tool":"cart.add","durationMs":84,` +
      `\n       "agent":{"class":"webmcp","trust":"verified",` +
      `\n       "vendor":"Google","name":"Google-Agent"}`,
  },
  memory: {
    type: 'memory.accessed',
    fields:
      `"agent":{"class":"webmcp","trust":"declared",` +
      `\n       "vendor":"Google","name":"Google-Agent"},` +
      `\n       "metadata":{"page":"/products/17"}`,
  },
}

export type SampleKind = 'agent' | 'auth' | 'authz' | 'tool' | 'memory'

/** A sample event of the page's type. Its id contains the time, so that it is a new event each day. */
export function sampleBody(kind: SampleKind, occurredAtMs: number): string {
  const sample = samples[kind] ?? { type: 'agent.detected', fields: '' }
  const occurredAt = isoTime(occurredAtMs)
  const outcome = kind === 'authz' ? 'blocked' : 'success'
  return (
    `{"events":[{"id":"evt_${occurredAtMs.toString(36)}","siteId":"my-site","sessionId":"s1",` +
    `\n       "occurredAt":"${occurredAt}","type":"${sample.type}",` +
    `\n       "outcome":"${outcome}",${sample.fields}}]}`
  )
}

/** The type of the sample event, for the sentence above it. */
export function sampleType(kind: SampleKind): string {
  return samples[kind]?.type ?? 'agent.detected'
}
