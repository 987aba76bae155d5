/** The parts of Express and Koa that tests use; the packages have no types of their own. */
declare module 'express' {
  type Handler = (...args: never[]) => unknown
  interface Application {
    (request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse): void
    use(handler: Handler): void
    all(path: string, handler: Handler): void
  }
  export default function express(): Application
}

declare module 'koa' {
  type Listener = (
    request: import('node:http').IncomingMessage,
    response: import('node:http').ServerResponse,
  ) => Promise<void>
  interface Application {
    silent: boolean
    use(handler: (context: never, next: () => Promise<unknown>) => Promise<unknown>): void
    callback(): Listener
  }
  const Koa: new () => Application
  export default Koa
}
