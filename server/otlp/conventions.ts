/**
 * The names that senders use, by convention: which spans and log records are about agents, which attributes hold what
 * an event needs, and which hold content. A renamed attribute is one more entry here. `fixtures/recorded/` has requests
 * that the senders made, `fixtures/composed/` has those of conventions that only Python packages send, or none yet.
 */

/** What a span or record is about; `events.ts` makes its event. */
export type Meaning =
  'tool call' | 'tool list' | 'agent' | 'client' | 'memory read' | 'memory write' | 'decision' | 'model call'

/** The value of an attribute, or the name of the span, that says what it is about. */
interface SpanConvention {
  name: string
  attribute: string | null // null: the name of the span
  meanings: { readonly [value: string]: Meaning } | 'tool call'
}

/** In order: the first that knows the value of its attribute decides. */
export const spanConventions: readonly SpanConvention[] = [
  {
    name: 'OpenTelemetry GenAI 1.44',
    attribute: 'gen_ai.operation.name',
    meanings: {
      execute_tool: 'tool call',
      invoke_agent: 'agent',
      create_agent: 'agent',
      invoke_workflow: 'agent',
      plan: 'agent',
      search_memory: 'memory read',
      create_memory: 'memory write',
      update_memory: 'memory write',
      upsert_memory: 'memory write',
      delete_memory: 'memory write',
      create_memory_store: 'memory write',
      delete_memory_store: 'memory write',
      chat: 'model call',
      text_completion: 'model call',
      generate_content: 'model call',
      embeddings: 'model call',
      retrieval: 'model call',
      fetch_response: 'model call',
    },
  },
  {
    name: 'OpenTelemetry MCP 1.44',
    attribute: 'mcp.method.name',
    meanings: {
      'tools/call': 'tool call',
      'tools/list': 'tool list',
      initialize: 'client',
      'server/discover': 'client',
    },
  },
  {
    name: 'OpenInference 0.1',
    attribute: 'openinference.span.kind',
    meanings: {
      TOOL: 'tool call',
      AGENT: 'agent',
      LLM: 'model call',
      EMBEDDING: 'model call',
      RETRIEVER: 'model call',
      RERANKER: 'model call',
    },
  },
  {
    name: 'Vercel AI SDK 5, and LegacyOpenTelemetry of 7',
    attribute: 'ai.operationId',
    meanings: {
      'ai.toolCall': 'tool call',
      'ai.generateText.doGenerate': 'model call',
      'ai.streamText.doStream': 'model call',
      'ai.generateObject.doGenerate': 'model call',
      'ai.streamObject.doStream': 'model call',
      'ai.embed.doEmbed': 'model call',
      'ai.embedMany.doEmbed': 'model call',
    },
  },
  {
    name: 'OpenLLMetry 0.27',
    attribute: 'traceloop.span.kind',
    meanings: { tool: 'tool call', agent: 'agent', workflow: 'agent' },
  },
  {
    // Its types span, event, chain, evaluator and guardrail do not say what an agent did.
    name: 'Langfuse 3',
    attribute: 'langfuse.observation.type',
    meanings: {
      tool: 'tool call',
      agent: 'agent',
      generation: 'model call',
      embedding: 'model call',
      retriever: 'model call',
    },
  },
  {
    name: 'Genkit 1.42',
    attribute: 'genkit:metadata:subtype',
    meanings: {
      tool: 'tool call',
      'tool.v2': 'tool call',
      flow: 'agent',
      model: 'model call',
      embedder: 'model call',
      retriever: 'model call',
      reranker: 'model call',
    },
  },
  {
    name: 'Gemini CLI 0.61',
    attribute: 'gen_ai.operation.name',
    meanings: { tool_call: 'tool call', agent_call: 'agent', llm_call: 'model call' },
  },
  {
    name: 'Pydantic AI and Claude Code, by the name of the span',
    attribute: null,
    meanings: {
      'agent run': 'agent',
      // Its tools are log records. Their spans say the same, but not that a call failed.
      'claude_code.llm_request': 'model call',
    },
  },
  // Pydantic AI sets no operation on the spans of its tools.
  { name: 'Pydantic AI 1', attribute: 'gen_ai.tool.name', meanings: 'tool call' },
]

interface LogConvention {
  meaning: Meaning
  agent: { vendor: string; name: string }
}

const claudeCode = { vendor: 'Anthropic', name: 'Claude Code' }
const codex = { vendor: 'OpenAI', name: 'Codex' }

/** By the name of the event, which is the record's name, its attribute `event.name` or its body. */
export const logConventions: { readonly [event: string]: LogConvention } = {
  'claude_code.tool_result': { meaning: 'tool call', agent: claudeCode },
  'claude_code.tool_decision': { meaning: 'decision', agent: claudeCode },
  'claude_code.api_request': { meaning: 'model call', agent: claudeCode },
  'claude_code.api_error': { meaning: 'model call', agent: claudeCode },
  'codex.conversation_starts': { meaning: 'agent', agent: codex },
  'codex.tool_result': { meaning: 'tool call', agent: codex },
  'codex.tool_decision': { meaning: 'decision', agent: codex },
  'codex.api_request': { meaning: 'model call', agent: codex },
  'codex.sse_event': { meaning: 'model call', agent: codex },
  'codex.websocket_request': { meaning: 'model call', agent: codex },
}

/** The agent that a scope is part of, for spans that do not name it as its log records do. */
export const scopeAgents: ReadonlyMap<string, LogConvention['agent']> = new Map([
  ['gemini-cli', { vendor: 'Google', name: 'Gemini CLI' }],
])

/** Scopes whose attribute `event.name` lacks the prefix of the names above. */
export const eventPrefixes: { readonly [scope: string]: string } = {
  'com.anthropic.claude_code.events': 'claude_code.',
}

/** The attributes of a span or record that hold each part of an event: the first that has a value. */
export const sources = {
  site: ['sightglass.site.id'],
  session: [
    'gen_ai.conversation.id',
    'mcp.session.id',
    'session.id',
    'conversation.id', // Codex
    'ai.telemetry.metadata.sessionId', // Vercel AI SDK
    'traceloop.association.properties.session_id',
    'mastra.metadata.threadId',
    'langfuse.session.id',
  ],
  tool: ['gen_ai.tool.name', 'tool.name', 'ai.toolCall.name', 'tool_name', 'tool_call.function.name'],
  callId: [
    'gen_ai.tool.call.id',
    'gen_ai.tool.call_id',
    'tool_call.id',
    'ai.toolCall.id',
    'tool_use_id',
    'call_id',
    'tool.id',
  ],
  toolType: ['gen_ai.tool.type'],
  vendor: ['gen_ai.provider.name', 'gen_ai.system', 'llm.provider', 'llm.system', 'ai.model.provider'],
  agent: [
    'gen_ai.agent.name',
    'agent.name',
    'agent_name',
    'gen_ai.workflow.name',
    'ai.telemetry.functionId', // `gen_ai.agent.name` from Vercel AI SDK 7 on
  ],
  /** Of the tool or the agent, whichever the span is about. */
  entity: ['traceloop.entity.name', 'genkit:name'],
  agentId: ['gen_ai.agent.id'],
  agentVersion: ['gen_ai.agent.version', 'app.version'],
  client: ['mcp.client.name', 'mcp.client_info.name', 'client.name'],
  clientVersion: ['mcp.client.version', 'mcp.client_info.version', 'client.version'],
  model: [
    'gen_ai.response.model',
    'gen_ai.request.model',
    'llm.model_name',
    'ai.model.id',
    'langfuse.observation.model.name',
    'model',
  ],
  inputTokens: [
    'gen_ai.usage.input_tokens',
    'gen_ai.usage.prompt_tokens',
    'llm.token_count.prompt',
    'ai.usage.inputTokens',
    'ai.usage.promptTokens',
    'input_tokens',
    'input_token_count',
  ],
  outputTokens: [
    'gen_ai.usage.output_tokens',
    'gen_ai.usage.completion_tokens',
    'llm.token_count.completion',
    'ai.usage.outputTokens',
    'ai.usage.completionTokens',
    'output_tokens',
    'output_token_count',
  ],
  store: ['gen_ai.memory.store.id', 'gen_ai.memory.store.name'],
  records: ['gen_ai.memory.record.count'],
  error: ['error.type', 'error_type', 'error', 'exception.type'],
  succeeded: ['success'],
  duration: ['duration_ms'],
  guard: ['agent.threat.detection.action', 'gen_ai.guardrail.action.type'],
  decision: ['decision'], // Claude Code and Codex, as the next one
  decidedBy: ['source'],
  rule: ['agent.threat.detection.rule_id', 'gen_ai.guardrail.rule.id', 'gen_ai.guardrail.id'],
  reason: ['agent.threat.detection.severity', 'gen_ai.guardrail.reason', 'gen_ai.guardrail.name'],
} as const satisfies { [part: string]: readonly string[] }

/** Spans of other scopes that have none of these attributes name no agent. */
export const agentNaming: { scopes: ReadonlyMap<string, unknown>; attributes: readonly string[] } = {
  scopes: scopeAgents,
  attributes: [...sources.agent, ...sources.entity, ...sources.client],
}

/**
 * Who makes the model, as `detectAgent` and the evidence pack name the operator, so that one filter finds all of its
 * events. By the value that senders give, or its first part: `openai.chat` of the Vercel AI SDK.
 */
export const vendors: ReadonlyMap<string, string> = new Map(
  Object.entries({
    openai: 'OpenAI',
    anthropic: 'Anthropic',
    gcp: 'Google', // gcp.gemini, gcp.vertex_ai, gcp.gen_ai
    google: 'Google',
    'google-vertex': 'Google',
    googleai: 'Google', // Genkit
    vertexai: 'Google',
    vertex_ai: 'Google',
    gemini: 'Google',
    aws: 'Amazon', // aws.bedrock
    amazon: 'Amazon',
    'amazon-bedrock': 'Amazon',
    azure: 'Microsoft', // azure.ai.inference, azure.ai.openai
    az: 'Microsoft',
    cohere: 'Cohere',
    deepseek: 'DeepSeek',
    meta: 'Meta',
    mistral: 'Mistral AI',
    mistral_ai: 'Mistral AI',
    mistralai: 'Mistral AI',
    perplexity: 'Perplexity',
    x_ai: 'xAI',
    xai: 'xAI',
  }),
)

/** A decision of any convention; others are stored as sent, without a decision of ours. */
export const decisions: { readonly [action: string]: 'allow' | 'deny' | 'review' } = {
  allow: 'allow',
  warn: 'allow',
  accept: 'allow', // Claude Code
  approved: 'allow', // Codex, as the next ones
  approved_for_session: 'allow',
  approved_execpolicy_amendment: 'allow',
  approved_with_amendment: 'allow',
  block: 'deny',
  reject: 'deny', // Claude Code
  denied: 'deny', // Codex, as the next two
  abort: 'deny',
  timed_out: 'deny',
  ask: 'review',
}

/** Arguments, results, messages and the address of a person. A `*` at the end matches any rest. */
const contentNames = [
  // GenAI conventions, current and older
  'gen_ai.input.messages',
  'gen_ai.output.messages',
  'gen_ai.system_instructions',
  'gen_ai.prompt*',
  'gen_ai.completion*',
  'gen_ai.tool.call.arguments',
  'gen_ai.tool.call.result',
  'gen_ai.tool.definitions',
  'gen_ai.retrieval.query.text',
  'gen_ai.retrieval.documents',
  'gen_ai.memory.query.text',
  'gen_ai.memory.records',
  'gen_ai.evaluation.explanation',
  'gen_ai.event.content',
  // OpenInference
  'input.value',
  'output.value',
  'llm.input_messages*',
  'llm.output_messages*',
  'llm.prompt*',
  'llm.tools*',
  'llm.invocation_parameters', // the same tools,
  'llm.choices*',
  'llm.function_call',
  'tool.parameters',
  'tool_call.function.arguments',
  'retrieval.documents*',
  'reranker.*',
  'embedding.embeddings*',
  'embedding.text',
  // Vercel AI SDK
  'ai.prompt*',
  'ai.response.text',
  'ai.response.object',
  'ai.response.toolCalls',
  'ai.response.reasoning*',
  'ai.toolCall.args',
  'ai.toolCall.result',
  'ai.value*',
  'ai.embedding*',
  'ai.schema*',
  'ai.settings.output',
  // Pydantic AI
  'tool_arguments',
  'tool_response',
  'all_messages_events',
  'pydantic_ai.all_messages',
  'final_result',
  'events',
  'model_request_parameters',
  'request_data',
  'logfire.msg',
  'logfire.json_schema',
  // Claude Code, Codex
  'prompt',
  'user_prompt',
  'tool_parameters',
  'tool_input',
  'tool_output',
  'tool_result',
  'full_command',
  'response',
  'arguments',
  'output',
  'body',
  'user.email',
  // OpenLLMetry, MLflow, Langfuse
  'traceloop.entity.input',
  'traceloop.entity.output',
  'mlflow.spanInputs',
  'mlflow.spanOutputs',
  'langfuse.observation.input',
  'langfuse.observation.output',
  'langfuse.trace.input',
  'langfuse.trace.output',
  // Genkit, Mastra
  'genkit:input',
  'genkit:output',
  'mastra.metadata.body',
  'mastra.metadata.headers',
]

/** Mastra names them after the kind of the span: `mastra.agent_run.input`. */
const contentPattern = /^mastra\.\w{1,60}\.(?:input|output)$/

const contentExact = new Set(contentNames.filter((name) => !name.endsWith('*')))
const contentPrefixes = contentNames.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))

export type Part = keyof typeof sources

/** What an attribute is: content, and a source of parts of an event: the number of the part, and its rank there. */
interface Role {
  isContent: boolean
  parts: readonly { part: Part; index: number; rank: number }[]
}

/** A cache: names recur. Hostile names only evict others. */
const roles = new Map<string, Role>()
const rolesMax = 4_000
/** Longer names are not remembered: 4,000 of a megabyte each would stay in memory. */
const roleNameCharsMax = 200

/** Content is stored only with `--otlp-content`. */
export function roleOf(name: string): Role {
  const cachedRole = roles.get(name)
  if (cachedRole !== undefined) return cachedRole
  if (roles.size >= rolesMax) roles.clear()
  const parts = (Object.entries(sources) as [Part, readonly string[]][]).flatMap(([part, names], index) => {
    const rank = names.indexOf(name)
    return rank < 0 ? [] : [{ part, index, rank }]
  })
  const isContent =
    contentExact.has(name) ||
    contentPrefixes.some((prefix) => name.startsWith(prefix)) ||
    contentPattern.test(name)
  const role = { isContent, parts }
  if (name.length <= roleNameCharsMax) roles.set(name, role)
  return role
}
