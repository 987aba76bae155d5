/** Configuration of assistants: entries that each client reads, merged without losing what a file has. */
import { describe, expect, test } from 'bun:test'
import { AppError } from '../errors.ts'
import { configText, mcpClients, mergedConfig, type Connection } from './clients.ts'

const remote: Connection = { url: 'https://traces.example.com/mcp' }
const local: Connection = { command: '/opt/sight glass', args: ['mcp', '--data-dir', 'C:\\d"x'] }

describe('the text of a new file', () => {
  test('Claude, Cursor and VS Code read JSON', () => {
    expect(JSON.parse(configText('claude', remote))).toEqual({
      mcpServers: {
        sightglass: {
          type: 'http',
          url: remote.url,
          headers: { Authorization: 'Bearer ${SIGHTGLASS_MCP_KEY}' },
        },
      },
    })
    expect(JSON.parse(configText('cursor', remote))).toEqual({
      mcpServers: {
        sightglass: { url: remote.url, headers: { Authorization: 'Bearer ${env:SIGHTGLASS_MCP_KEY}' } },
      },
    })
    expect(JSON.parse(configText('vscode', local))).toEqual({
      servers: { sightglass: { type: 'stdio', ...local } },
    })
    expect(JSON.parse(configText('cursor', local))).toEqual({
      mcpServers: { sightglass: { type: 'stdio', ...local } },
    })
  })

  test('Codex reads TOML', () => {
    const read = (connection: Connection) => Bun.TOML.parse(configText('codex', connection))
    expect(read(remote)).toEqual({
      mcp_servers: { sightglass: { url: remote.url, bearer_token_env_var: 'SIGHTGLASS_MCP_KEY' } },
    })
    expect(read(local)).toEqual({ mcp_servers: { sightglass: local } })
  })
})

const refusal = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    if (error instanceof AppError) return error.message
    throw error
  }
  throw new Error('was not refused')
}

describe('merging', () => {
  test('keeps everything else, with its indent, and changes nothing the second time', () => {
    const text = '{\n\t"theme": "dark",\n\t"mcpServers": {\n\t\t"other": { "command": "x" }\n\t}\n}\n'
    const merged = mergedConfig('cursor', text, remote, false)
    expect(JSON.parse(merged)).toEqual({
      theme: 'dark',
      mcpServers: {
        other: { command: 'x' },
        ...(JSON.parse(configText('cursor', remote)) as { mcpServers: object }).mcpServers,
      },
    })
    expect(merged).toContain('\n\t"theme"')
    expect(mergedConfig('cursor', merged, remote, false)).toBe(merged)
  })

  test('keeps comments and order of TOML', () => {
    const text = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y" # keep\n'
    const merged = mergedConfig('codex', text, remote, false)
    expect(merged).toBe(`${text}\n${configText('codex', remote)}`)
    expect(mergedConfig('codex', merged, remote, false)).toBe(merged)
    const textAfter = `${merged}\n[tui]\nnotifications = true\n`
    const replaced = mergedConfig('codex', textAfter, local, true)
    expect(replaced).toStartWith(text)
    expect(Bun.TOML.parse(replaced)).toEqual({
      model: 'x',
      tui: { notifications: true },
      mcp_servers: { other: { command: 'y' }, sightglass: local },
    })
  })

  test('another entry of the name is replaced only when asked', () => {
    for (const client of mcpClients) {
      const text = configText(client, local)
      expect(refusal(() => mergedConfig(client, text, remote, false))).toContain('another entry')
      expect(mergedConfig(client, text, remote, true)).toBe(configText(client, remote))
      expect(mergedConfig(client, ' \n', remote, false)).toBe(configText(client, remote))
    }
  })

  test('a file that cannot be merged is left alone', () => {
    expect(refusal(() => mergedConfig('vscode', '// a comment\n{}', remote, false))).toContain(
      'JSON without comments',
    )
    for (const text of ['[]', '5', '{"servers": []}', '{"servers": "x"}'])
      expect(refusal(() => mergedConfig('vscode', text, remote, false))).toContain('an object')
    expect(refusal(() => mergedConfig('codex', 'a = ', remote, false))).toContain('not TOML')
    const inline = 'mcp_servers = { sightglass = { url = "x" } }\n'
    expect(refusal(() => mergedConfig('codex', inline, remote, true))).toContain('one table')
    const nested = `${configText('codex', local)}[mcp_servers.sightglass.env]\nA = "b"\n`
    expect(refusal(() => mergedConfig('codex', nested, remote, true))).toContain('one table')
  })
})
