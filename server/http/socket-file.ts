/** The file of a unix socket: one that a crash left behind goes, one that somebody answers on stays. */
import { lstatSync, rmSync } from 'node:fs'
import { connect } from 'node:net'

/** Throws a sentence when the path is taken by anything but a dead socket. */
export async function clearSocket(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket())
    throw new Error(`cannot listen on unix:${path}: there is something else at this path`)
  if (await answers(path)) throw new Error(`cannot listen on unix:${path}: another process answers there`)
  rmSync(path, { force: true })
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
