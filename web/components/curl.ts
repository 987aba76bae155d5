/** Shell commands that the dashboard offers to copy, and the sample event of each page. */
import { isoTime } from '../app/clock.ts'
import { escapeHidden } from '../text/text.ts'

/** Quotes a text as one word of a POSIX shell. */
function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** The command that sends events, broken over several lines. */
export function sendCurl(url: string, key: string, body: string, path = '/v1/sdk/events'): string {
  return [
    `curl ${url.replace(/\/$/, '')}${path} \\`,
    `  -H 'authorization: Bearer ${key}' \\`,
    `  -H 'content-type: application/json' \\`,
    `  -d ${shellWord(escapeHidden(body))}`,
  ].join('\n')
}

export const keyPlaceholder = 'YOUR_INGEST_KEY'

const samples: { [prefix: string]: { type: string; fields: string } } = {
  agent: {
    type: 'agent.detected',
    fields:
      `"agent":{"class":"crawler","trust":"detected","vendor":"OpenAI",` +
      `\n       "name":"GPTBot","purpose":"training"}`,
  },
  auth: {
    type: 'auth.identity_presented',
    fields:
      `"agent":{"class":"webmcp","trust":"verified","vendor":"Google","name":"Google-Agent"},` +
      `\n       "metadata":{"protocol":"web-bot-auth","subject":"agent.example"}`,
  },
  authz: {
    type: 'authz.evaluated',
    fields:
      `"tool":"checkout.pay","agent":{"class":"dom","trust":"detected","vendor":"OpenAI","name":"Operator"},` +
      `\n       "policy":{"decision":"deny","ruleId":"tool:checkout.pay","reason":"trust below verified"}`,
  },
  tool: {
    type: 'tool.executed',
    fields:
      `"tool":"cart.add","durationMs":84,` +
      `\n       "agent":{"class":"webmcp","trust":"verified","vendor":"Google","name":"Google-Agent"}`,
  },
  memory: {
    type: 'memory.accessed',
    fields:
      `"agent":{"class":"webmcp","trust":"declared","vendor":"Google","name":"Google-Agent"},` +
      `\n       "metadata":{"page":"/products/17"}`,
  },
}

export type SampleKind = 'agent' | 'auth' | 'authz' | 'tool' | 'memory'

/** A sample event of the page's type. Its id contains the time, so that it is a new event each day. */
export function sampleBody(kind: SampleKind, occurredAtMs: number): string {
  const sample = samples[kind] ?? { type: 'agent.detected', fields: '' }
  const occurredAt = isoTime(occurredAtMs)
  const outcome = kind === 'authz' ? 'blocked' : 'success'
  return (
    `{"events":[{"id":"evt_${occurredAtMs.toString(36)}","siteId":"my-site","sessionId":"s1",` +
    `\n       "occurredAt":"${occurredAt}","type":"${sample.type}","outcome":"${outcome}",` +
    `\n       ${sample.fields}}]}`
  )
}

/** The type of the sample event, for the sentence above it. */
export function sampleType(kind: SampleKind): string {
  return samples[kind]?.type ?? 'agent.detected'
}
