/** JSON as it was sent, formatted and coloured, with a copy button. */
import './json.css'
import { prettyJson, prettyTokens } from '../text/json-text.ts'
import { CopyButton } from './copy.tsx'

/** `json` is text: numbers keep every digit that was sent. */
export function JsonView({ json, title, label }: { json: string; title: string; label: string }) {
  return (
    <section class="json-view">
      <header>
        <h3>{title}</h3>
        <CopyButton text={() => prettyJson(json)} label="Copy JSON" />
      </header>
      <pre tabIndex={0} role="group" aria-label={label}>
        {prettyTokens(json).map((part) =>
          part.kind === 'space' ? part.text : <span class={part.kind}>{part.text}</span>,
        )}
      </pre>
    </section>
  )
}
