/**
 * A program with OpenTelemetry’s own tracer and exporter, configured by the environment. Sends the same batch five
 * times, as exporters do when an answer is lost, and prints the result of each.
 */
import { context, trace } from '@opentelemetry/api'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'

const [form, site, calls] = process.argv.slice(2)
const memory = new InMemorySpanExporter()
const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: memory })] })
const tracer = provider.getTracer('trip-planner', '1.0.0')
const shared = { 'sightglass.site.id': site, 'gen_ai.conversation.id': `conversation-${form}` }
const agent = tracer.startSpan('invoke_agent Planner', {
  attributes: { ...shared, 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'Planner' },
})
const inside = trace.setSpan(context.active(), agent)
for (let n = 0; n < Number(calls); n++) {
  const attributes = {
    ...shared,
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': `tool-${n % 7}`,
  }
  const span = tracer.startSpan('execute_tool', { attributes: { ...attributes, n, half: n / 2 } }, inside)
  if (n % 10 === 0) {
    span.recordException(new Error('no answer'))
    span.setStatus({ code: 2, message: 'no answer' })
  }
  span.end()
}
agent.end()
const exporter = form === 'protobuf' ? new ProtobufExporter() : new JsonExporter()
for (let attempt = 0; attempt < 5; attempt++) {
  const result = await new Promise((done) => exporter.export(memory.getFinishedSpans(), done))
  process.stdout.write(`${result.code} ${result.error ?? ''}\n`)
}
await exporter.shutdown()
