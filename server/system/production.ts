/** Sets NODE_ENV=production before any library reads it, because Elysia echoes bodies in development. */

if (Bun.isStandaloneExecutable) Bun.env['NODE_ENV'] ??= 'production'

export {}
