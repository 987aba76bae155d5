#!/usr/bin/env bun
/** The executable's entry: reads the command line, runs the verb, and ends with its exit code. */
import './system/gc-options.ts'
import './system/production.ts'
import { run } from './cli/run.ts'
import { secretVariables } from './cli/config.ts'
import { takeEnvironment } from './system/environment.ts'

// Everything we make is for this user alone, whatever the shell allows.
process.umask(0o077)
process.exit(await run(process.argv.slice(2), takeEnvironment(secretVariables)))
