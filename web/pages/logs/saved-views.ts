/** The list of kept views, as it is written to the browser and read back. */

export interface View {
  name: string
  search: string // with its leading '?', or '' for everything
}

const viewsMax = 50

/** What another version wrote, or a hand, is left out where it does not fit. */
export function readViews(text: string | null): View[] {
  try {
    const found: unknown = JSON.parse(text ?? '[]')
    if (!Array.isArray(found)) return []
    return found.filter(isView).slice(0, viewsMax)
  } catch {
    return []
  }
}

function isView(value: unknown): value is View {
  if (typeof value !== 'object' || value === null || !('name' in value) || !('search' in value)) return false
  const { name, search } = value
  return typeof name === 'string' && name !== '' && typeof search === 'string' && /^(\?|$)/.test(search)
}

/** A view of the same name is replaced. */
export function addView(list: View[], view: View): View[] {
  return [view, ...list.filter((other) => other.name !== view.name)].slice(0, viewsMax)
}
