/** A block of code with a copy button. It scrolls instead of wrapping. */
import './code-block.css'
import { CopyButton } from './copy.tsx'

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
