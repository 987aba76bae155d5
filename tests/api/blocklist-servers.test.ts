/** Blocklists in Debian's nginx, Apache and Caddy: each loads, and refuses what the judge calls contradicted. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { BlockList } from 'node:net'
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { programs } from '../../scripts/programs.ts'
import { detectAgent } from '../../sdk/agents/detect-agent.ts'
import { packFormat, type EvidencePack } from '../../sdk/judge/evidence-pack.ts'
import { judge, openEvidence } from '../../sdk/judge/judge.ts'
import { bundledEvidence } from '../../server/evidence/evidence.ts'
import { blocklistOf } from '../../server/access/blocklist.ts'
import { blocklistWriters } from '../../server/access/blocklist-formats.ts'
import { testWith } from '../support/installed.ts'
import { freePort } from '../support/free-port.ts'
import { run } from '../support/process.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)

const facts = {
  source: 'https://example.com',
  published: '2026-05-01',
  seen: '2026-10-01',
  digest: '0'.repeat(64),
}
const pack: EvidencePack = {
  format: packFormat,
  made: '2026-10-01T00:00:00.000Z',
  hosts: [],
  directories: [],
  tokens: [],
  lists: [
    {
      ...facts,
      list: 'gptbot',
      operator: 'OpenAI',
      products: { GPTBot: 'crawler' },
      networks: ['203.0.113.0/25', '2001:db8:1::/48'],
    },
    {
      ...facts,
      list: 'gpt-user',
      operator: 'OpenAI',
      products: { 'ChatGPT-User': 'user' },
      networks: ['198.51.100.7/32'],
    },
    {
      ...facts,
      list: 'claude',
      operator: 'Anthropic',
      products: { ClaudeBot: 'crawler' },
      networks: ['192.0.2.0/28'],
    },
  ],
}
const atMs = Date.UTC(2026, 10, 23)
const evidence = openEvidence(pack)
const blocklist = blocklistOf(
  { purposes: [], agents: ['CCBot', 'spider'], vendors: ['ByteDance'], unverified: true },
  pack,
  '2026-06-01',
  () => ({ requests: 7, firstMs: atMs, lastMs: atMs }),
)
const text = {
  command: 'sightglass export blocklist --format X --unverified',
  since: '2026-10-25',
  until: '2026-11-23',
}

const userAgents = [
  'GPTBot',
  'gptbot/1.1',
  'XGPTBot',
  'GPTBot-Image',
  'ChatGPT-User/1.0',
  'ClaudeBot/1.0',
  'CCBot/2.0',
  'spider.com',
  'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)',
  'Mozilla/5.0 (compatible; ChatGPT-User/1.0; unlike GPTBot)', // the longest name counts
  'Mozilla/5.0 (Linux) Bytespider; spider-feedback@bytedance.com',
  'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
]
const addresses = [
  '203.0.113.9',
  '203.0.113.200',
  '198.51.100.7',
  '192.0.2.3',
  '10.1.2.3',
  '172.20.0.1',
  '2001:db8:1::5',
  '2001:db8:2::5',
  'fd00::1',
]

function isRefused(userAgent: string, address: string): boolean {
  const agent = detectAgent(userAgent)
  if (agent !== null && blocklist.everywhere.some(({ name }) => name === agent.name)) return true
  return judge(agent, { address }, evidence, { atMs }).verdict === 'contradicted'
}

type Ask = (userAgent: string, address: string) => Promise<boolean> | boolean

/** Asks for every agent from every address, and compares with the judge. */
async function expectRefusals(isRefusedBy: Ask): Promise<void> {
  const [seenLines, judged]: [string[], string[]] = [[], []]
  for (const userAgent of userAgents) {
    for (const address of addresses) {
      seenLines.push(`${userAgent} ${address} ${await isRefusedBy(userAgent, address)}`)
      judged.push(`${userAgent} ${address} ${isRefused(userAgent, address)}`)
    }
  }
  expect(seenLines).toEqual(judged)
  expect(judged.filter((line) => line.endsWith(' true')).length).toBe(judgedRefusals)
}

/** Of 9 addresses: CCBot, spider and Bytespider from all; three names of GPTBot from 3 others; ClaudeBot from 5. */
const judgedRefusals = 3 * 9 + 3 * 3 + 5

interface JsonRules {
  refuse: { userAgentPattern: string }[]
  refuseOutside: {
    agents: { userAgentPattern: string }[]
    exceptUserAgentPattern: string | null
    networks: string[]
  }[]
}

test('a program that follows the JSON refuses what the judge contradicts', async () => {
  const { refuse, refuseOutside } = JSON.parse(blocklistWriters.json(blocklist, text)) as JsonRules
  const fits = (pattern: string, userAgent: string): boolean => new RegExp(pattern, 'i').test(userAgent)
  const familyOf = (address: string): 'ipv4' | 'ipv6' => (address.includes(':') ? 'ipv6' : 'ipv4')
  const isIn = (networks: string[], address: string): boolean => {
    const list = new BlockList()
    for (const network of networks) {
      const [start = '', bits] = network.split('/')
      list.addSubnet(start, Number(bits), familyOf(start))
    }
    return list.check(address, familyOf(address))
  }
  await expectRefusals(
    (userAgent, address) =>
      refuse.some((agent) => fits(agent.userAgentPattern, userAgent)) ||
      refuseOutside.some(
        ({ agents, exceptUserAgentPattern, networks }) =>
          agents.some((agent) => fits(agent.userAgentPattern, userAgent)) &&
          (exceptUserAgentPattern === null || !fits(exceptUserAgentPattern, userAgent)) &&
          !isIn(networks, address),
      ),
  )
})

interface WebServer {
  program: string
  format: 'nginx' | 'apache' | 'caddy'
  /** Checks a configuration instead of serving. */
  check: (command: string[]) => string[]
  /** Writes the configuration that includes the blocklist; returns the command. */
  configure(folder: string, port: number): string[]
}

const servers: WebServer[] = [
  {
    program: programs.nginx,
    format: 'nginx',
    check: (command) => [...command, '-t'],
    configure(folder, port) {
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
        .map((name) => `${name}_temp_path ${folder};`)
        .join(' ')
      writeFileSync(
        `${folder}/nginx.conf`,
        `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
        events {}
        http {
          ${temporary} access_log off;
          set_real_ip_from 127.0.0.0/8; real_ip_header X-Forwarded-For;
          include ${folder}/blocklist;
          server {
            listen 127.0.0.1:${port};
            if ($sightglass_blocked) { return 403; }
            location / { return 200 "page"; }
          }
        }`,
      )
      return ['/usr/sbin/nginx', '-c', `${folder}/nginx.conf`, '-p', folder]
    },
  },
  {
    program: programs.apache2,
    format: 'apache',
    check: (command) => [...command, '-t'],
    configure(folder, port) {
      for (const name of ['page', 'robots.txt', 'private']) writeFileSync(`${folder}/site/${name}`, name)
      const modules = ['mpm_event', 'authz_core', 'authz_host', 'remoteip', 'mime', 'setenvif', 'dir']
      writeFileSync(
        `${folder}/apache.conf`,
        `ServerName localhost
        ServerRoot ${folder}
        User www-data
        Group www-data
        PidFile ${folder}/pid
        Mutex pthread
        DefaultRuntimeDir ${folder}
        ErrorLog ${folder}/error.log
        ${modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
        TypesConfig /dev/null
        Listen 127.0.0.1:${port}
        RemoteIPHeader X-Forwarded-For
        RemoteIPInternalProxy 127.0.0.0/8
        DocumentRoot ${folder}/site
        <VirtualHost *:${port}>
          DocumentRoot ${folder}/site
          <Directory ${folder}/site>
            Require all granted
          </Directory>
          <Files private>
            Require all denied
          </Files>
          Include ${folder}/blocklist
        </VirtualHost>`,
      )
      return ['/usr/sbin/apache2', '-DFOREGROUND', '-f', `${folder}/apache.conf`]
    },
  },
  {
    program: programs.caddy,
    format: 'caddy',
    check: ([program, , ...extraArgs]) => [program!, 'validate', ...extraArgs],
    configure(folder, port) {
      writeFileSync(
        `${folder}/Caddyfile`,
        `{
          admin off
          auto_https off
        }
        http://127.0.0.1:${port} {
          import ${folder}/blocklist
          respond page 200
        }`,
      )
      return ['/usr/bin/caddy', 'run', '--config', `${folder}/Caddyfile`, '--adapter', 'caddyfile']
    },
  },
]

/** Caddy 2.6 reads the header of a proxy only by this word; newer ones have client_ip. */
const behindProxy = (config: string): string => config.replaceAll(/(not \{\n\t+remote_ip) /g, '$1 forwarded ')

/** Caddy warns about files that its formatter would change. */
async function expectFormatted(program: string, path: string): Promise<void> {
  const formatter = run([program, 'fmt', path], { cwd: '/', env: {} })
  await formatter.exited
  expect(formatter.stdout()).toBe(readFileSync(path, 'utf8'))
}

const packageOf = (path: string) =>
  path === programs.apache2 ? 'apache2' : path === programs.caddy ? 'caddy' : 'nginx'

for (const { program, format, check, configure } of servers) {
  testWith(
    packageOf(program),
    `the configuration for ${format} loads and refuses what the judge contradicts`,
    async () => {
      using folder = tempDir(`blocklist-${format}`)
      const { path } = folder
      mkdirSync(folder.join('site'))
      const config = blocklistWriters[format](blocklist, text)
      writeFileSync(folder.join('blocklist'), format === 'caddy' ? behindProxy(config) : config)
      const port = freePort()
      const env = { HOME: path, XDG_DATA_HOME: path, XDG_CONFIG_HOME: path }
      const command = configure(path, port)
      // Apache serves as another user. A server that a test of this process started has set the umask.
      for (const name of [
        '',
        'site',
        ...readdirSync(folder.join('site')).map((fileName) => `site/${fileName}`),
      ])
        chmodSync(folder.join(name), 0o755)
      const server = run(command, { cwd: path, env })
      try {
        const isUp = () =>
          fetch(`http://127.0.0.1:${port}/`).then(
            () => true,
            () => false,
          )
        for (const endMs = performance.now() + 30_000; !(await isUp()); await Bun.sleep(20))
          if (performance.now() > endMs || !existsSync(`/proc/${server.pid}`))
            throw new Error(`${format} did not start: ${server.stderr()}`)
        const get = async (path: string, userAgent: string, address: string): Promise<number> => {
          const headers = { 'user-agent': userAgent, 'x-forwarded-for': address }
          const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
          await response.text()
          return response.status
        }
        await expectRefusals(async (userAgent, address) => {
          const status = await get('/page', userAgent, address)
          expect([200, 403]).toContain(status)
          return status === 403
        })
        expect(await get('/robots.txt', 'CCBot/2.0', '203.0.113.9')).toBe(200)
        if (format === 'caddy') await expectFormatted(program, folder.join('blocklist'))
        else expect(readFileSync(folder.join('error.log'), 'utf8')).not.toMatch(/warn\]|emerg\]/)
        // The site's own rules still hold.
        if (format === 'apache') expect((await fetch(`http://127.0.0.1:${port}/private`)).status).toBe(403)
      } finally {
        server.signal('SIGTERM')
        await server.exited
      }
    },
  )

  testWith(packageOf(program), `${format} loads the lists of the bundled evidence`, async () => {
    using folder = tempDir(`blocklist-${format}`)
    const { path } = folder
    mkdirSync(folder.join('site'))
    const { pack: bundled } = await bundledEvidence()
    const allChoices = {
      purposes: ['training', 'search', 'assistant'],
      agents: [],
      vendors: [],
      unverified: false,
    }
    const noTraffic = () => ({ requests: 0, firstMs: null, lastMs: null })
    const unverified = { ...allChoices, purposes: ['assistant'], unverified: true }
    for (const choice of [allChoices, unverified]) {
      const chosen = blocklistOf(choice, bundled, '2026-06-01', noTraffic)
      writeFileSync(folder.join('blocklist'), blocklistWriters[format](chosen, text))
      const command = check(configure(path, freePort()))
      const checked = run(command, {
        cwd: path,
        env: { HOME: path, XDG_DATA_HOME: path, XDG_CONFIG_HOME: path },
      })
      expect([await checked.exited, checked.stderr()]).toEqual([
        0,
        expect.not.stringMatching(/emerg|\[warn\]/),
      ])
    }
  })
}
