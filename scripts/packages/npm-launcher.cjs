#!/usr/bin/env node
/** Starts the executable of this platform's package with the given arguments, and ends as it ends. */
'use strict'
const { spawn } = require('node:child_process')
const { readFileSync } = require('node:fs')
const { constants } = require('node:os')

/** The executable of a package, or null if the package is not installed. */
function find(name) {
  const file = process.platform === 'win32' ? 'sightglass.exe' : 'sightglass'
  try {
    return require.resolve(`${name}/bin/${file}`)
  } catch {
    return null
  }
}

const usual = `@sightglass/${process.platform}-${process.arch}`

/** Some installers ignore the C library and install the packages of both. */
function executable() {
  const musl = find(`${usual}-musl`)
  const glibc = find(usual)
  if (musl === null || glibc === null) return glibc ?? musl
  return process.report.getReport().header.glibcVersionRuntime === undefined ? musl : glibc
}

/**
 * npm and npx start this in a shell and pass SIGTERM and SIGINT on to that shell only. It ends without ending this
 * process, and SIGHUP ends npm without its shell.
 */
function endWithNpm(child) {
  const first = npmProcesses()
  setInterval(() => {
    if (npmProcesses() !== first) child.kill('SIGTERM')
  }, 250).unref()
}

/** The parent, and if that is a shell its parent where /proc says so. Their numbers change when one of them ends. */
function npmProcesses() {
  const parent = process.ppid
  try {
    const [, name, above] = /\((.*)\) \S (\d+)/s.exec(readFileSync(`/proc/${parent}/stat`, 'utf8'))
    return /^(sh|dash|bash|ash|busybox|zsh)$/.test(name) ? `${parent} ${above}` : `${parent}`
  } catch {
    return `${parent}`
  }
}

const path = executable()
if (path === null) {
  console.error(
    `sightglass: the package ${usual} is not installed. Install without --omit=optional, on a supported platform.`,
  )
  process.exit(1)
}
const child = spawn(path, process.argv.slice(2), { stdio: 'inherit' })
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
if (process.env.npm_lifecycle_event !== undefined && process.platform !== 'win32') endWithNpm(child)
child.on('error', (error) => {
  console.error(`sightglass: ${path} cannot be started: ${error.message}`)
  process.exit(1)
})
child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]))
