/** The parts of a page and of its `modelContext` that are in use, and how a method of theirs is watched. */

/** What the browser has; other implementations may lack the optional parts. */
export interface ModelContext {
  registerTool(tool: unknown, options?: { signal?: AbortSignal }): unknown
  getTools?(): Promise<unknown[]>
  addEventListener?: ListenMethod
}

type ListenMethod = (type: string, listener: (event: Event) => void) => void

/** The window of a page, or a test's. */
export type PageWindow = Pick<Window, 'addEventListener' | 'setTimeout' | 'location' | 'performance'> & {
  document: Pick<Document, 'forms'> & { modelContext?: ModelContext }
  navigator?: { modelContext?: ModelContext }
  SubmitEvent?: { prototype: object }
}

export type Method = (...args: unknown[]) => unknown

/**
 * Replaces a method where it is defined, so that calls through the prototype are seen too. The replacement has the
 * name, the length and the attributes of the method. Does nothing where the page has frozen it.
 */
export function replaceMethod(
  object: object,
  name: string,
  run: (method: Method, self: unknown, args: unknown[]) => unknown,
): void {
  for (let owner: object | null = object; owner !== null; owner = Reflect.getPrototypeOf(owner)) {
    const descriptor = Reflect.getOwnPropertyDescriptor(owner, name)
    if (descriptor === undefined) continue
    if (typeof descriptor.value !== 'function') return
    const value = new Proxy(descriptor.value as Method, { apply: run })
    Reflect.defineProperty(owner, name, { ...descriptor, value })
    return
  }
}

/** `options` are the second argument of a registration or of a call. */
export function onAbort(options: unknown, act: () => void): void {
  try {
    const signal = (options as { signal?: unknown } | null | undefined)?.signal
    if (!(signal instanceof AbortSignal)) return
    if (signal.aborted) act()
    else signal.addEventListener('abort', act, { once: true })
  } catch {
    // A hostile object: what it belongs to ends otherwise.
  }
}
