/** `sightglass mcp`: assistants ask the appliance over standard input and output, and `mcp config` configures them. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { Json } from '../../../db/contract/store.ts'
import { AppError, UsageError } from '../../errors.ts'
import {
  configFiles,
  configText,
  keyVariable,
  mcpClients,
  mergedConfig,
  type Connection,
} from '../../mcp/clients.ts'
import { httpExchange, serveLines, type Exchange } from '../../mcp/stdio.ts'
import { requireNoLink } from '../../system/written-file.ts'
import { serverAccess } from '../../runtime/store-access.ts'
import { textOf, type Params, type WorkContext } from '../../runtime/work.ts'
import { command, type Noun } from '../command.ts'
import { requireOrg } from '../data-command.ts'
import { applianceAddress, choice, folderPath, text, toggle } from '../option.ts'
import { orgOption } from '../options.ts'
import { print, printAnswer } from '../print.ts'

const toOption = {
  to: {
    read: applianceAddress,
    value: 'URL',
    default: null,
    help: `address of an appliance on another machine, which needs a secret key in ${keyVariable}`,
    flagOnly: true,
  },
} as const

const keyOption = {
  'mcp-key': { ...text('KEY', 'secret key for --to'), environmentOnly: true, secret: true },
} as const

export const mcp: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'mcp',
      summary: 'answer an assistant over standard input and output (MCP)',
      about: [
        'Assistants start this command. It passes their questions to the appliance that uses the data folder, or with --to to another one, until its input ends. The tools only read. The audit log has an entry for each session of questions.',
      ],
      examples: [
        'sightglass mcp --data-dir /var/lib/sightglass',
        'sightglass mcp --to https://traces.example.com',
      ],
      options: { ...toOption, ...keyOption, ...orgOption },
      json: false,
      work: { message: answerHere },
      async run({ values }) {
        const { to, org } = values
        const exchange = to === null ? socketExchange(values['data-dir'], org) : remote(to, values['mcp-key'])
        await serveLines({ exchange, input: Bun.stdin.stream(), write: (line) => print(line) })
        return 0
      },
    }),
    command({
      name: 'mcp config',
      summary: 'print the configuration of an assistant, or merge it into its file',
      about: [
        'Without --to the assistant starts this executable, which needs no key but must be allowed to read the data folder. With --to it connects over HTTP with the secret key in SIGHTGLASS_MCP_KEY.',
        'Files: .mcp.json (Claude), .cursor/mcp.json and .vscode/mcp.json in the current folder, ~/.codex/config.toml.',
      ],
      examples: [
        'sightglass mcp config --client claude --data-dir /var/lib/sightglass',
        'sightglass mcp config --client cursor --to https://traces.example.com --write',
      ],
      options: {
        client: { ...choice(mcpClients, 'the assistant'), needed: true, flagOnly: true },
        ...toOption,
        ...orgOption,
        file: {
          read: folderPath,
          value: 'FILE',
          default: null,
          help: 'another file of the client',
          flagOnly: true,
        },
        write: { ...toggle('merge the entry into the file of the client'), flagOnly: true },
        yes: { ...toggle('replace another entry of the same name'), flagOnly: true },
      },
      run({ values }) {
        const { client, to, org } = values
        if (client === null) throw new UsageError(`--client is ${mcpClients.join(', ')}`)
        const connection: Connection =
          to === null ? ownProgram(values['data-dir'], org) : { url: `${to}/mcp` }
        const file = values.file ?? pathOf(configFiles[client])
        if (!values.write) {
          const snippet = configText(client, connection)
          printAnswer(values, { client, file, text: snippet }, () => snippet)
          return 0
        }
        requireNoLink(file, values.file === null ? baseOf(configFiles[client]) : undefined)
        const oldText = existsSync(file) ? readFileSync(file, 'utf8') : ''
        const newText = mergedConfig(client, oldText, connection, values.yes)
        if (newText !== oldText) replaceFile(file, newText)
        const isChanged = newText !== oldText
        printAnswer(values, { client, file, changed: isChanged }, () =>
          isChanged ? `Wrote ${file}.` : `${file} has this entry already.`,
        )
        return 0
      },
    }),
  ],
}

function ownProgram(dataDir: string, org: string): Connection {
  const program = Bun.isStandaloneExecutable ? process.execPath : 'sightglass'
  const orgArgs = org === orgOption.org.default ? [] : ['--org', org]
  return { command: program, args: ['mcp', '--data-dir', dataDir, ...orgArgs] }
}

function pathOf(file: string): string {
  return file.startsWith('~/') ? join(homedir(), file.slice(2)) : resolve(file)
}

/** The project or the home folder, below which somebody else's repository may have put links. */
function baseOf(file: string): string {
  return file.startsWith('~/') ? homedir() : resolve('.')
}

/** In one step: a client that reads meanwhile sees the file before or after. */
function replaceFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}`
  try {
    writeFileSync(draft, text, { mode: existsSync(path) ? statSync(path).mode & 0o777 : 0o644, flag: 'wx' })
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
}

/** Messages pass through the control socket. The appliance may be restarted meanwhile. */
function socketExchange(dataDir: string, org: string): Exchange {
  const server = serverAccess(dataDir)
  return async (message) => {
    const { reply } = (await server.call('mcp message', { org, message: message as Json })) as { reply: Json }
    return reply
  }
}

function remote(url: string, key: string | null): Exchange {
  if (key === null) throw new UsageError(`--to needs a secret key in ${keyVariable}`, 'sightglass key create')
  return httpExchange(url, key)
}

async function answerHere({ store, server }: WorkContext, params: Params): Promise<Json> {
  if (server === undefined) throw new AppError('unavailable', 'Only a running server answers assistants.')
  const { id } = await requireOrg(store, textOf(params, 'org'))
  return { reply: await server.answerMcp(id, params['message'] ?? null) }
}
