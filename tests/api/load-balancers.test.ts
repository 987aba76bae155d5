/** nginx and haproxy of Debian accept the files of the guide, and nginx finds the node that runs. */
import { expect, setDefaultTimeout } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { programs } from '../../scripts/programs.ts'
import { event } from '../support/events.ts'
import { testWith } from '../support/installed.ts'
import { freePort } from '../support/free-port.ts'
import { run } from '../support/process.ts'
import { testServer } from '../support/server.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)

const guide = join(import.meta.dir, '../../server/guide/nginx.conf')

testWith('nginx', 'requests reach the node that runs, and a live stream is not buffered', async () => {
  using dir = tempDir('nginx')
  await using server = await testServer()
  const port = freePort()
  const dead = freePort()
  const ports = [dead, Number(new URL(server.url).port), dead]
  const text = readFileSync(guide, 'utf8')
    .replace(/10\.0\.0\.1\d:8080/g, () => `127.0.0.1:${ports.shift()}`)
    .replace('listen 0.0.0.0:8080;', `listen 127.0.0.1:${port}; access_log off;`)
  expect(ports).toEqual([])
  writeFileSync(dir.join('nginx.conf'), text)
  const globals = `daemon off; master_process off; pid ${dir.join('pid')}; error_log stderr;`
  const child = run(
    [programs.nginx, '-p', dir.path, '-e', 'stderr', '-c', dir.join('nginx.conf'), '-g', globals],
    {
      cwd: '/',
      env: {},
    },
  )
  try {
    const base = `http://127.0.0.1:${port}`
    const statusOf = (url: string) =>
      fetch(url).then(
        ({ status }) => status,
        () => 0,
      )
    await until(async () => (await statusOf(`${base}/healthz`)) === 200)
    const key = await server.key('ingest')
    const statuses: number[] = []
    const post = async (id: string) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ events: [event(id)] })
      statuses.push((await fetch(`${base}/v1/sdk/events`, { method: 'POST', headers, body })).status)
    }
    for (let n = 0; n < 6; n++) await post(`evt_${n}`)
    expect(statuses).toEqual([202, 202, 202, 202, 202, 202])

    const cookie = await server.signIn('owner')
    const stream = await fetch(`${base}/api/live`, { headers: { cookie } })
    const reader = stream.body!.getReader()
    let seenText = ''
    const reading = (async () => {
      while (!seenText.includes('evt_live')) seenText += new TextDecoder().decode((await reader.read()).value)
    })()
    await post('evt_live')
    await Promise.race([reading, Bun.sleep(5_000)])
    await reader.cancel()
    expect(seenText).toContain('evt_live')
  } finally {
    child.signal('SIGTERM')
    await child.exited
  }
})

testWith('haproxy', 'haproxy accepts its file', async (path) => {
  const file = join(import.meta.dir, '../../server/guide/haproxy.cfg')
  const child = run([path, '-c', '-f', file], { cwd: '/', env: {} })
  expect([await child.exited, child.stderr()]).toEqual([0, ''])
})
