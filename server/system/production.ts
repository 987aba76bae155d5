/** Says "production" before any library asks: Elysia reads NODE_ENV at run time and echoes bodies in development. */

if (Bun.isStandaloneExecutable) Bun.env['NODE_ENV'] ??= 'production'

export {}
