/** Debian's nginx, Apache and Caddy with the log formats they come with: recognized, followed across their rotation. */
import { expect, setDefaultTimeout } from 'bun:test'
import { mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { programs } from '../../scripts/programs.ts'
import { binaryPath, cleanEnv, startAppliance } from '../support/binary.ts'
import { testWith } from '../support/installed.ts'
import { freePort } from '../support/free-port.ts'
import { run, type Running } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(90_000)

const gptBot = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'
const browser = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

interface WebServer {
  format: string
  start(folder: string, port: number, log: string): Running
  rotate(server: Running, log: string, url: string): void | Promise<void>
}

/** As logrotate does by default: the server writes to the old file until it hears the signal. */
function renameAndSignal(signal: NodeJS.Signals): WebServer['rotate'] {
  return (server, log) => {
    renameSync(log, `${log}.1`)
    server.signal(signal)
  }
}

const servers: Record<'nginx' | 'apache2' | 'caddy', WebServer> = {
  nginx: {
    format: 'combined',
    start(folder, port, log) {
      const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (folderName) => `${folderName}_temp_path ${folder};`,
      )
      const config = `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
        events {} http { ${temp.join(' ')}
          server { listen 127.0.0.1:${port}; access_log ${log}; location / { return 200 "page"; } } }`
      writeFileSync(`${folder}/nginx.conf`, config)
      return run([programs.nginx, '-c', `${folder}/nginx.conf`, '-p', folder], { cwd: folder, env: {} })
    },
    rotate: renameAndSignal('SIGUSR1'),
  },
  apache2: {
    format: 'combined',
    start(folder, port, log) {
      mkdirSync(`${folder}/www`)
      const modules = ['mpm_event', 'authz_core'].map(
        (name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`,
      )
      // The format "combined" of Debian's apache2.conf.
      const config = `${modules.join('\n')}
        ServerName localhost
        Listen 127.0.0.1:${port}
        PidFile ${folder}/pid
        DefaultRuntimeDir ${folder}
        DocumentRoot ${folder}/www
        ErrorLog ${folder}/error.log
        User nobody
        Group nogroup
        LogFormat "%h %l %u %t \\"%r\\" %>s %O \\"%{Referer}i\\" \\"%{User-Agent}i\\"" combined
        CustomLog ${log} combined\n`
      writeFileSync(`${folder}/apache.conf`, config)
      return run([programs.apache2, '-f', `${folder}/apache.conf`, '-DFOREGROUND'], { cwd: folder, env: {} })
    },
    rotate: renameAndSignal('SIGUSR1'),
  },
  caddy: {
    format: 'caddy',
    start(folder, port, log) {
      const config = `{
        admin off
        auto_https off
      }
      http://127.0.0.1:${port} {
        respond "page"
        log {
          output file ${log} {
            roll_size 1MiB
          }
        }
      }\n`
      writeFileSync(`${folder}/Caddyfile`, config)
      const env = { HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder }
      return run([programs.caddy, 'run', '--config', `${folder}/Caddyfile`, '--adapter', 'caddyfile'], {
        cwd: folder,
        env,
      })
    },
    /** It rotates its log itself, here after 1 MiB, and compresses it. */
    async rotate(_, log, url) {
      const headers = { 'user-agent': browser }
      const isRotated = (): boolean => readdirSync(dirname(log)).some((name) => name.startsWith('access-'))
      while (!isRotated())
        await Promise.all(Array.from({ length: 50 }, async () => (await fetch(url, { headers })).text()))
    },
  },
}

async function until(holds: () => Promise<boolean>, condition: string): Promise<void> {
  for (const endMs = performance.now() + 30_000; !(await holds().catch(() => false)); await Bun.sleep(50))
    if (performance.now() > endMs) throw new Error(`${condition} did not happen in time`)
}

for (const name of ['nginx', 'apache2', 'caddy'] as const) {
  const server = servers[name]
  // Where it is not installed, its format is read from the samples of server/access/formats.test.ts alone.
  testWith(name, `${name} in its own format, followed across a rotation`, async () => {
    using temp = tempDir(name)
    const log = temp.join('access.log')
    const port = freePort()
    const running = server.start(temp.path, port, log)
    await using appliance = await startAppliance()
    const watching = run([binaryPath, 'watch', log, '--site', name, '--data-dir', appliance.dataDir], {
      cwd: temp.path,
      env: cleanEnv({}),
    })
    const get = async (path: string, userAgent = gptBot): Promise<boolean> => {
      const headers = { 'user-agent': userAgent }
      return (await fetch(`http://127.0.0.1:${port}${path}`, { headers })).text().then(() => true)
    }
    const pages = async (): Promise<string[]> => {
      const { stdout } = await appliance.cli('export', 'traces')
      return [...stdout.matchAll(/"type":"agent\.requested".*?"page":"([^"]*)"/g)]
        .map(([, page]) => page!)
        .toSorted()
    }
    await until(() => get('/start', browser), 'the start')
    for (const path of ['/a', '/b?token=1', '/c']) await get(path)
    await until(async () => (await pages()).length === 3, 'reading')
    await server.rotate(running, log, `http://127.0.0.1:${port}/`)
    await get('/d')
    await until(async () => {
      await get('/e')
      return (await pages()).includes('/e')
    }, 'reading after the rotation')
    running.signal('SIGTERM')
    await running.exited
    watching.signal('SIGTERM')
    expect(await watching.exited).toBe(0)
    expect((await pages()).filter((page) => page !== '/e')).toEqual(['/a', '/b', '/c', '/d'])
    expect(watching.stdout()).toContain(`${log}: ${server.format}, fits `)
    expect(watching.stdout()).toMatch(
      /Read [\d,]+ lines: \d+ stored, 0 already known, [\d,]+ by people, 0 excluded, 0 bad\./,
    )
    expect(watching.stderr()).not.toContain('is not')
  })
}
