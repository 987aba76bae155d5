/** The bar above every page: title, the page's own controls, the menu button and the command palette. */
import './page-frame.css'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { menuOpen, paletteOpen } from '../app/shortcuts.ts'

let titlesShown = 0

export function PageBar(props: { title: string; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${props.title} · Sightglass`
    // After navigation focus moves to the new title, for screen readers. The first load leaves focus to the browser.
    if (titlesShown > 0) heading.current?.focus({ preventScroll: true })
    titlesShown += 1
  }, [props.title])
  return (
    <header class="page-bar">
      <button
        type="button"
        class="button menu-button"
        aria-haspopup="dialog"
        onClick={() => (menuOpen.value = true)}
      >
        Menu
      </button>
      <h1 ref={heading} tabIndex={-1}>
        {props.title}
      </h1>
      {props.children}
      <button
        type="button"
        class="button go-to"
        aria-haspopup="dialog"
        aria-keyshortcuts="Control+K"
        onClick={() => (paletteOpen.value = true)}
      >
        Go to… <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
    </header>
  )
}
