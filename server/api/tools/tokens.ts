/** What a tool costs a model that reads its descriptor: as the site says, or estimated (contract §5). */

export interface TokenCost {
  tokens: number
  estimated: boolean
}

export function tokenCost(tool: { [member: string]: unknown }): TokenCost {
  const { tokens, name, description, inputSchema, outputSchema } = tool
  if (typeof tokens === 'number') return { tokens, estimated: false }
  const chars = JSON.stringify({ name, description, inputSchema, outputSchema }).length
  return { tokens: Math.ceil(chars / 4), estimated: true }
}
