/** POST /mcp: the record for assistants, read only, with a secret key whose scopes decide which tools there are. */
import { Elysia } from 'elysia'
import { addressOf, type Where } from '../http/address.ts'
import { decodeBody, mediaType, readBytes } from '../http/body.ts'
import type { KeyGuard } from '../http/guard.ts'
import { contextOf, readQuery } from '../http/request.ts'
import { acceptedType, json } from '../http/response.ts'
import { limits } from '../limits.ts'
import { answerMessage, errorReply, parseMessage, RpcError, type Reply } from './protocol.ts'
import { mcpServer, type McpServices } from './server.ts'
import { clean } from './untrusted.ts'

interface McpRoutesServices extends McpServices, Where {
  guard: KeyGuard
}

export function mcpRoutes(services: McpRoutesServices) {
  const { guard } = services
  return new Elysia().post(
    '/mcp',
    async ({ request }) => {
      const key = await guard.secret(request)
      readQuery(request, {})
      acceptedType(request.headers.get('accept'), ['application/json'])
      mediaType(request.headers.get('content-type'), ['application/json'])
      const { headers } = request
      const text = decodeBody(await readBytes(request, { bytesMax: limits.jsonBodyBytesMax }))
      const agent = headers.get('user-agent')
      const client = agent === null ? null : clean(agent, 80)
      const caller = { orgId: key.orgId, actor: `key:${key.id}`, scopes: key.scopes, client }
      const server = mcpServer(services, caller, addressOf(request, services), contextOf(request).id)
      return respond(await reply(() => answerMessage(server, parseMessage(text), headers)))
    },
    { parse: 'none' },
  )
}

/** Errors before the message is understood have no id. */
async function reply(work: () => Promise<Reply>): Promise<Reply> {
  try {
    return await work()
  } catch (thrown) {
    if (thrown instanceof RpcError) return errorReply(thrown, null)
    throw thrown
  }
}

function respond({ status, body }: Reply): Response {
  return body === null ? new Response(null, { status }) : json(body, status)
}
