/** What is open over the page: the phone's menu, the palette, the list of shortcuts. */
import { signal } from '@preact/signals'

export const menuOpen = signal(false)
export const paletteOpen = signal(false)
export const shortcutsOpen = signal(false)
