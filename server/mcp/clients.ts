/** How assistants are configured: the file of each client, the entry in it, and how it is merged into a file. */
import { AppError } from '../errors.ts'

export const mcpClients = ['claude', 'cursor', 'codex', 'vscode'] as const
export type McpClient = (typeof mcpClients)[number]

/** By HTTP with the key in a variable, or by a program that talks to the appliance of this machine. */
export type Connection = { url: string } | { command: string; args: string[] }

export const keyVariable = 'SIGHTGLASS_MCP_KEY'
const serverName = 'sightglass'

/** Below the project's folder, or below the home folder where it begins with `~`. */
export const configFiles: { readonly [client in McpClient]: string } = {
  claude: '.mcp.json',
  cursor: '.cursor/mcp.json',
  codex: '~/.codex/config.toml',
  vscode: '.vscode/mcp.json',
}

/** How the JSON files refer to a variable of the environment, where they list servers, and their word for HTTP. */
const jsonClients = {
  claude: { list: 'mcpServers', variable: `\${${keyVariable}}`, type: 'http' },
  cursor: { list: 'mcpServers', variable: `\${env:${keyVariable}}`, type: null },
  vscode: { list: 'servers', variable: `\${env:${keyVariable}}`, type: 'http' },
} as const

interface Fields {
  [name: string]: unknown
}

function jsonEntry(client: keyof typeof jsonClients, connection: Connection): Fields {
  const { variable, type } = jsonClients[client]
  if ('command' in connection) return { type: 'stdio', ...connection }
  const headers = { Authorization: `Bearer ${variable}` }
  return { ...(type === null ? {} : { type }), url: connection.url, headers }
}

function tomlBlock(connection: Connection): string {
  const text = (value: string): string => JSON.stringify(value) // a basic string of TOML, which has the same escapes
  const lines =
    'command' in connection
      ? [`command = ${text(connection.command)}`, `args = [${connection.args.map(text).join(', ')}]`]
      : [`url = ${text(connection.url)}`, `bearer_token_env_var = ${text(keyVariable)}`]
  return [`[mcp_servers.${serverName}]`, ...lines, ''].join('\n')
}

/** A whole file with this one entry. */
export function configText(client: McpClient, connection: Connection): string {
  if (client === 'codex') return tomlBlock(connection)
  const { list } = jsonClients[client]
  return `${JSON.stringify({ [list]: { [serverName]: jsonEntry(client, connection) } }, null, 2)}\n`
}

/**
 * The text of a client's file with our entry; equal to `text` when it has it already. Throws when the file has another
 * entry of this name, unless `replaces`, and when it cannot be parsed.
 */
export function mergedConfig(
  client: McpClient,
  text: string,
  connection: Connection,
  replaces: boolean,
): string {
  if (text.trim() === '') return configText(client, connection)
  return client === 'codex'
    ? mergedToml(text, connection, replaces)
    : mergedJson(client, text, connection, replaces)
}

function mergedJson(
  client: keyof typeof jsonClients,
  text: string,
  connection: Connection,
  replaces: boolean,
): string {
  const whole = parsed(() => JSON.parse(text) as unknown, 'JSON without comments')
  const { list } = jsonClients[client]
  const servers = fieldsOf(fieldsOf(whole)[list] ?? {})
  const entry = jsonEntry(client, connection)
  if (Bun.deepEquals(servers[serverName], entry)) return text
  requireFree(Object.hasOwn(servers, serverName), replaces)
  const merged = { ...fieldsOf(whole), [list]: { ...servers, [serverName]: entry } }
  const indent = /^([ \t]+)"/m.exec(text)?.[1] ?? '  '
  return `${JSON.stringify(merged, null, indent)}\n`
}

function fieldsOf(value: unknown): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw notMergeable('an object of servers')
}

/** As text, so that comments and order stay. */
function mergedToml(text: string, connection: Connection, replaces: boolean): string {
  const serversOf = (toml: string) =>
    fieldsOf(parsed(() => Bun.TOML.parse(toml), 'TOML') as unknown)['mcp_servers'] as Fields | undefined
  const block = tomlBlock(connection)
  const currentServer = serversOf(text)?.[serverName]
  if (currentServer === undefined) return `${text.trimEnd()}\n\n${block}`
  if (Bun.deepEquals(currentServer, serversOf(block)![serverName])) return text
  requireFree(true, replaces)
  const header = `[mcp_servers.${serverName}]`
  const lines = text.split('\n')
  const start = lines.findIndex((line) => line.trim() === header)
  const end = lines.findIndex((line, index) => index > start && /^\s*\[/.test(line))
  const remainingText = [...lines.slice(0, start), ...(end === -1 ? [] : lines.slice(end))].join('\n')
  // Also written another way, such as with a table of headers below it, which only a person can move.
  if (start === -1 || serversOf(remainingText)?.[serverName] !== undefined)
    throw notMergeable(`one table ${header}`)
  return `${remainingText.trimEnd()}\n\n${block}`.trimStart()
}

function requireFree(isTaken: boolean, replaces: boolean): void {
  if (!isTaken || replaces) return
  throw new AppError('conflict', `The file has another entry named ${serverName}.`, {
    hint: 'add --yes to replace it',
  })
}

function parsed<T>(read: () => T, form: string): T {
  try {
    return read()
  } catch {
    throw notMergeable(form)
  }
}

function notMergeable(form: string): AppError {
  return new AppError('conflict', `The file is not ${form}, so the entry cannot be merged.`, {
    hint: 'omit --write and add the printed entry by hand',
  })
}
