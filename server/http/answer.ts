/** Answers made from JSON: a value to serialize, or text that is JSON already. */
import { commonHeaders } from './headers.ts'

export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return jsonText(JSON.stringify(value), status, headers)
}

const jsonHeaders = commonHeaders('application/json')

export function jsonText(text: string, status = 200, headers: Record<string, string> = {}): Response {
  const response = new Response(text, { status, headers: jsonHeaders })
  for (const name in headers) response.headers.set(name, headers[name]!)
  return response
}
