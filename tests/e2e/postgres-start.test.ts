/** A node whose database starts after it, and the doctor's view of the node's own connections. */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { cli, startAppliance } from '../support/binary.ts'
import { freePort } from '../support/free-port.ts'
import { startPostgres } from '../support/postgres.ts'
import { tempDir } from '../support/temp-dir.ts'

test('a node waits for its database, says so, and then serves; doctor explains its connections', async () => {
  using dir = tempDir('late-database')
  writeFileSync(dir.join('keys'), '11'.repeat(32), { mode: 0o600 })
  const port = freePort()
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const env = { SIGHTGLASS_DATABASE: url, SIGHTGLASS_KEY_FILE: dir.join('keys') }
  const connectionAttempt = Promise.withResolvers<void>()
  const refusing = Bun.listen({
    hostname: '127.0.0.1',
    port,
    socket: {
      open(socket) {
        socket.terminate()
        connectionAttempt.resolve()
      },
      data() {},
    },
  })
  const starting = startAppliance({ dataDir: dir.join('node'), env })
  // Only then, so that a database that starts quickly is late, too.
  await connectionAttempt.promise
  refusing.stop(true)
  const cluster = await startPostgres({ port })
  try {
    await using node = await starting
    expect(node.stderr()).toContain('waiting_for_database')
    expect((await fetch(`${node.url}/readyz`)).status).toBe(200)
    const doctor = await cli(['doctor', '--json'], { dataDir: dir.join('node'), env })
    const checks = JSON.parse(doctor.stdout).checks as { id: string; status: string; detail: string }[]
    expect(checks.find(({ id }) => id === 'outbound')).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining(`database 127.0.0.1 port ${port}`),
    })
  } finally {
    await cluster.stop()
  }
}, 120_000)

test('a database that does not exist is no reason to wait', async () => {
  using dir = tempDir('missing-database')
  writeFileSync(dir.join('keys'), '11'.repeat(32), { mode: 0o600 })
  const cluster = await startPostgres()
  try {
    const env = {
      SIGHTGLASS_DATABASE: cluster.url.replace(/[^/]*$/, 'missing'),
      SIGHTGLASS_KEY_FILE: dir.join('keys'),
    }
    const { code, stderr } = await cli(['serve', '--listen', '127.0.0.1:0'], {
      dataDir: dir.join('node'),
      env,
    })
    expect(code).not.toBe(0)
    expect(stderr).toContain('3D000')
    expect(stderr).not.toContain('waiting_for_database')
  } finally {
    await cluster.stop()
  }
}, 120_000)
