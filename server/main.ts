#!/usr/bin/env bun
/** The entry point of the executable. */
import './system/environment.ts' // first: see there

// A chunk of its own: a server that restarts itself with options loads it only then, which takes 15 ms.
const { run } = await import('./cli/run.ts')

// Files are private to this user, whatever the umask of the shell.
process.umask(0o077)
process.exit(await run(process.argv.slice(2)))
