/** A command or text to take away: shown whole, scrolled within its own box, with its copy button. */
import './code-block.css'
import { CopyButton } from './copy-button.tsx'

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
