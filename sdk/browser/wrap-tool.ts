/** Wraps a WebMCP tool: reports the calls of its `execute`, and behaves exactly as the bare tool does. */
import type { Method } from './model-context.ts'

/** One call of a tool. Only the first `end` counts. Never throws. */
export interface ToolCall {
  end(outcome: 'success' | 'error' | 'aborted', details?: { error?: unknown; result?: unknown }): void
}

/** Must not throw. */
export type StartCall = (name: string, input: unknown, options: unknown) => ToolCall

/** Taken before the page can replace it. */
const { then: promiseThen } = Promise.prototype

/**
 * A view of `tool` for `registerTool`. The browser reads the fields of the view, each once and in its own order, so
 * that getters run and throw as with the bare tool.
 */
export function watchedTool(
  tool: unknown,
  start: StartCall,
): { view: unknown; fields: { [name: PropertyKey]: unknown } } {
  const fields = Object.create(null) as { [name: PropertyKey]: unknown }
  if (!isObject(tool)) return { view: tool, fields } // rejected by the browser
  let wrapped: { execute: Method; proxy: Method } | null = null
  const read = (key: PropertyKey): unknown => {
    const value: unknown = Reflect.get(tool, key)
    // The browser converts the name to a string in this moment. It rejects a missing one and a symbol.
    const isName = key === 'name' && value !== undefined && typeof value !== 'symbol'
    fields[key] = isName ? String(value) : value
    if (isName) return fields[key]
    if (key !== 'execute' || typeof value !== 'function') return value
    if (wrapped?.execute !== value) {
      const execute = value as Method
      wrapped = { execute, proxy: watchedExecute(execute, (self) => (self === view ? tool : self), begin) }
    }
    return wrapped.proxy
  }
  const begin = (args: unknown[]): ToolCall => start(String(fields['name'] ?? ''), args[0], args[1])
  // The target is an empty object, because a proxy of a frozen tool may not return another `execute`.
  const view: object = new Proxy(
    {},
    {
      get: (_, key) => read(key),
      set: (_, key, value) => Reflect.set(tool, key, value),
      has: (_, key) => Reflect.has(tool, key),
      ownKeys: () => Reflect.ownKeys(tool),
      getPrototypeOf: () => Reflect.getPrototypeOf(tool),
      getOwnPropertyDescriptor(_, key) {
        const descriptor = Reflect.getOwnPropertyDescriptor(tool, key)
        if (descriptor === undefined) return undefined
        return {
          value: read(key),
          configurable: true,
          enumerable: descriptor.enumerable === true,
          writable: true,
        }
      },
    },
  )
  return { view, fields }
}

function watchedExecute(
  execute: Method,
  selfOf: (self: unknown) => unknown,
  begin: (args: unknown[]) => ToolCall,
): Method {
  return new Proxy(execute, {
    apply(target, self, args: unknown[]) {
      const call = begin(args)
      let result: unknown
      try {
        result = Reflect.apply(target, selfOf(self), args)
      } catch (error) {
        call.end('error', { error })
        throw error
      }
      return observed(result, call)
    },
  })
}

/** Ends the call when `result` settles. Returns a value that settles in the same microtask as `result` itself. */
function observed(result: unknown, call: ToolCall): unknown {
  const good = (value: unknown): void => call.end('success', { result: value })
  const bad = (error: unknown): void => call.end('error', { error })
  if (!isObject(result)) {
    good(result)
    return result
  }
  if (isPromise(result)) {
    whenSettled(result, good, bad)
    return result
  }
  let foreign: unknown
  try {
    foreign = (result as { then?: unknown }).then
  } catch (error) {
    bad(error) // as the browser does when it reads it
    return result
  }
  if (typeof foreign !== 'function') {
    good(result)
    return result
  }
  return watchedThenable(result, foreign as Method, good, bad)
}

/** A thenable may do its work in `then`, so it must run once, when the browser calls it. */
function watchedThenable(
  thenable: object,
  foreign: Method,
  good: (value: unknown) => void,
  bad: (error: unknown) => void,
): object {
  const tapped = (report: (value: unknown) => void, next: unknown): unknown => {
    if (typeof next !== 'function') return next
    return (value: unknown): unknown => {
      report(value)
      return (next as Method)(value)
    }
  }
  return {
    then(resolve: unknown, reject: unknown): unknown {
      try {
        return Reflect.apply(foreign, thenable, [tapped(good, resolve), tapped(bad, reject)])
      } catch (error) {
        bad(error)
        throw error
      }
    },
  }
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** True only for promises whose `then` is the built-in one. */
export function isPromise(value: unknown): value is Promise<unknown> {
  try {
    return value instanceof Promise && value.then === promiseThen
  } catch {
    return false
  }
}

/** Calls one of the two when the promise settles, without marking anything else about it. */
export function whenSettled(
  promise: Promise<unknown>,
  good: (value: unknown) => void,
  bad: (error: unknown) => void,
): void {
  promiseThen.call(promise, good, bad)
}
