/**
 * Watches all HTTP servers of the process through Node's diagnostics channel, for frameworks without middleware around
 * the response. Code that handles a request finds what belongs to it by the async context.
 */

const key = Symbol.for('sightglass.watch')

/** Global, because bundlers copy this module into every part of an application. */
interface Watched {
  [key]?: { current(): unknown; stop(): void } | undefined
  process?: Builtins
}

interface Builtins {
  getBuiltinModule?(name: 'node:diagnostics_channel'): {
    subscribe(channel: string, listener: (message: never) => void): void
    unsubscribe(channel: string, listener: (message: never) => void): void
  }
  getBuiltinModule?(name: 'node:async_hooks'): {
    AsyncLocalStorage: new () => { getStore(): unknown; enterWith(store: unknown): void }
  }
}

/** What `begin` returned for the request that is being handled. Undefined when nothing is watched. */
export function currentOfWatch(): unknown {
  return (globalThis as Watched)[key]?.current()
}

/**
 * `begin` gets each request at its start, and `over` at their end those that began before: some frameworks accept
 * requests before they load the code that watches. Neither may throw. One watch at a time: a module that is loaded
 * again replaces the one before.
 */
export function watchServers<Request extends object, Response>(
  begin: (request: Request, response: Response) => unknown,
  finish: (request: Request, response: Response) => void,
): () => void {
  const holder = globalThis as Watched
  const { getBuiltinModule } = holder.process ?? {}
  if (typeof getBuiltinModule !== 'function')
    throw new TypeError('watchHttp needs Node.js 20.16, 22.3 or newer')
  const { subscribe, unsubscribe } = getBuiltinModule('node:diagnostics_channel')
  const { AsyncLocalStorage } = getBuiltinModule('node:async_hooks')
  const storage = new AsyncLocalStorage()
  const startedRequests = new WeakSet<Request>()
  type Message = { request: Request; response: Response }
  const started = ({ request, response }: Message): void => {
    startedRequests.add(request)
    storage.enterWith(null) // not what belongs to the request before on this connection
    storage.enterWith(begin(request, response))
  }
  const finished = ({ request, response }: Message): void => {
    if (!startedRequests.has(request)) finish(request, response)
  }
  subscribe('http.server.request.start', started)
  subscribe('http.server.response.finish', finished)
  const watcher = {
    current: () => storage.getStore(),
    stop(): void {
      unsubscribe('http.server.request.start', started)
      unsubscribe('http.server.response.finish', finished)
      if (holder[key] === watcher) delete holder[key]
    },
  }
  holder[key]?.stop()
  holder[key] = watcher
  return watcher.stop
}
