/** Hostile OTLP bodies, in protobuf and JSON. */
import {
  mebi,
  otlpBytesMax,
  filled,
  message,
  emptyIn,
  compressed,
  protobuf,
  paddedJson,
  inJson,
  keyValue,
  ids,
  toolCall,
  traces,
  type HostileBody,
} from './hostile-parts.ts'

const otlp = { key: 'ingest', type: 'application/x-protobuf', encoding: 'gzip' } as const
const otlpJson = { ...otlp, type: 'application/json' } as const

const span = 4 * mebi - 4_096 // bytes of the largest span that is read

export const otlpBodies: HostileBody[] = [
  {
    ...otlp,
    name: '3 million empty spans',
    path: '/v1/traces',
    bytes: () => protobuf(traces(filled(emptyIn(2), 6 * mebi))),
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: '32 million empty spans',
    path: '/v1/traces',
    bytes: () => protobuf(traces(filled(emptyIn(2), otlpBytesMax - mebi))),
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: '240,000 empty spans',
    path: '/v1/traces',
    bytes: () => protobuf(traces(filled(emptyIn(2), 480_000))),
    statuses: [200],
  },
  {
    ...otlp,
    name: '32 million empty resources',
    path: '/v1/traces',
    bytes: () => protobuf(filled(emptyIn(1), otlpBytesMax - mebi)),
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: '32 million empty scopes',
    path: '/v1/logs',
    bytes: () => protobuf(message(1, filled(emptyIn(2), otlpBytesMax - mebi))),
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: '32 million empty attributes of a resource',
    path: '/v1/logs',
    bytes: () =>
      protobuf(message(1, message(1, filled(emptyIn(1), otlpBytesMax - mebi)), message(2, emptyIn(2)))),
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: '32 million scope names',
    path: '/v1/logs',
    bytes: () =>
      protobuf(message(1, message(2, message(1, filled(emptyIn(1), otlpBytesMax - mebi)), emptyIn(2)))),
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: 'unknown fields only',
    path: '/v1/traces',
    bytes: () => protobuf(filled(Uint8Array.from([24, 0]), otlpBytesMax - mebi)),
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: 'spans of 2 million empty attributes',
    path: '/v1/traces',
    bytes: () => protobuf(traces(...Array.from({ length: 14 }, () => message(2, filled(emptyIn(9), span))))),
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: 'spans of 2 million empty events',
    path: '/v1/traces',
    bytes: () => protobuf(traces(...Array.from({ length: 14 }, () => message(2, filled(emptyIn(11), span))))),
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: 'spans of a list of 2 million empty values',
    path: '/v1/traces',
    bytes: () =>
      protobuf(
        traces(
          ...Array.from({ length: 14 }, () =>
            message(2, ...ids, keyValue('a', message(5, filled(emptyIn(1), span)))),
          ),
        ),
      ),
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: 'spans of an object of 2 million empty fields',
    path: '/v1/traces',
    bytes: () =>
      protobuf(
        traces(
          ...Array.from({ length: 14 }, () =>
            message(2, ...ids, keyValue('a', message(6, filled(emptyIn(1), span)))),
          ),
        ),
      ),
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: 'spans of nested groups of unknown fields',
    path: '/v1/traces',
    bytes: () =>
      protobuf(
        traces(
          ...Array.from({ length: 14 }, () => message(2, filled(Uint8Array.from([27, 27, 28, 28]), span))),
        ),
      ),
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: '100,000 spans of a tool, all refused by their times',
    path: '/v1/traces',
    bytes: () =>
      protobuf(
        traces(filled(message(2, ...ids, toolCall, Uint8Array.from([57, ...Array(8).fill(255)])), 7 * mebi)),
      ),
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: 'log records of a resource with a 4 MB attribute',
    path: '/v1/logs',
    bytes: () => {
      const name = Buffer.from('service.name')
      const resource = message(
        1,
        message(1, message(1, name), message(2, message(1, Buffer.alloc(span, 'x')))),
      )
      const record = message(2, message(12, Buffer.from('codex.tool_result')))
      return protobuf(message(1, resource, message(2, filled(record, 2 * mebi))))
    },
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: '32 million empty data points',
    path: '/v1/metrics',
    bytes: () =>
      protobuf(
        message(
          1,
          message(2, ...Array.from({ length: 14 }, () => message(2, message(5, filled(emptyIn(1), span))))),
        ),
      ),
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: '32 million empty metrics',
    path: '/v1/metrics',
    bytes: () => protobuf(message(1, message(2, filled(emptyIn(2), otlpBytesMax - mebi)))),
    statuses: [200, 413],
  },
  {
    ...otlp,
    name: '64 MB that are not compressed',
    path: '/v1/traces',
    encoding: undefined,
    bytes: () => filled(emptyIn(1), otlpBytesMax),
    statuses: [413],
  },
  {
    ...otlpJson,
    name: 'JSON: 2 million empty spans',
    path: '/v1/traces',
    bytes: () =>
      paddedJson('resourceSpans', inJson('[{"scopeSpans":[{"spans":[', '{},', '{}', ']}]}]', 6 * mebi)),
    statuses: [200, 413],
  },
  {
    ...otlpJson,
    name: 'JSON: 20 million empty resources',
    path: '/v1/traces',
    bytes: () => paddedJson('resourceSpans', inJson('[', '{},', '{}', ']', otlpBytesMax - mebi)),
    statuses: [200, 413],
  },
  {
    ...otlpJson,
    name: 'JSON: 20 million empty attributes of a resource',
    path: '/v1/logs',
    bytes: () =>
      paddedJson(
        'resourceLogs',
        inJson('[{"resource":{"attributes":[', '{},', '{}', ']}}]', otlpBytesMax - mebi),
      ),
    statuses: [200, 413],
  },
  {
    ...otlpJson,
    name: 'JSON: 60 million blanks',
    path: '/v1/logs',
    bytes: () => paddedJson('resourceLogs', inJson('', ' ', '', '[]', otlpBytesMax - mebi)),
    statuses: [200],
  },
  {
    ...otlpJson,
    name: 'JSON: 60 million brackets',
    path: '/v1/logs',
    bytes: () => paddedJson('other', filled('[', otlpBytesMax - mebi)),
    statuses: [400],
  },
  {
    ...otlpJson,
    name: 'JSON: a text of 30 million escaped quotes',
    path: '/v1/logs',
    bytes: () => paddedJson('other', inJson('"', '\\"', '', '"', otlpBytesMax - mebi)),
    statuses: [200],
  },
  {
    ...otlpJson,
    name: 'JSON: 10 million fields',
    path: '/v1/logs',
    bytes: () => paddedJson('other', inJson('0,', '"":0,', '"a":0', '', otlpBytesMax - mebi)),
    statuses: [413],
  },
  {
    ...otlpJson,
    name: 'JSON: spans of a million empty attributes',
    path: '/v1/traces',
    bytes: () => {
      const spanText = inJson('{"attributes":[', '{},', '{}', ']}', span).toString()
      return paddedJson(
        'resourceSpans',
        Buffer.from(`[{"scopeSpans":[{"spans":[${Array(14).fill(spanText).join(',')}]}]}]`),
      )
    },
    statuses: [200, 413],
  },
]
