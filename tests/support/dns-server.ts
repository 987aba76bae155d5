/** A DNS server for tests: answers PTR, A and AAAA from a table, and everything else with NXDOMAIN. */
import { createSocket } from 'node:dgram'

export interface DnsServer {
  port: number
  /** The names that were asked for. */
  asked: string[]
  close(): void
}

/** `names`: by address, its host names. `addresses`: by host name, its addresses. */
export interface DnsTable {
  names: { [address: string]: string[] }
  addresses: { [host: string]: string[] }
}

const types = { A: 1, PTR: 12, AAAA: 28 }

/** With `port` 0 any free one. */
export async function startDnsServer({ names, addresses }: DnsTable, port = 0): Promise<DnsServer> {
  const pointers = new Map(Object.entries(names).map(([address, hosts]) => [reversed(address), hosts]))
  const queries: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (query, { port: sender, address }) => {
    const { name, type, end } = questionOf(query)
    queries.push(name)
    const records = type === types.PTR ? pointers.get(name) : addresses[name]
    const answers = (records ?? []).filter(
      (record) => type === types.PTR || record.includes(':') === (type === types.AAAA),
    )
    const data = answers.map((record) => (type === types.PTR ? labelsOf(record) : addressBytes(record)))
    socket.send(answer(query.subarray(0, end), type, data), sender, address)
  })
  await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve))
  return { port: socket.address().port, asked: queries, close: () => void socket.close() }
}

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let offset = 12
  for (let length = query[offset]!; length > 0; length = query[offset]!) {
    labels.push(query.toString('latin1', offset + 1, offset + 1 + length))
    offset += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(offset + 1), end: offset + 5 }
}

/** RFC 1035 §4.1: header, the question again, one record for each datum. */
function answer(question: Buffer, type: number, data: Buffer[]): Buffer {
  const head = Buffer.from(question)
  head.writeUInt16BE(data.length > 0 ? 0x8180 : 0x8183, 2)
  head.writeUInt16BE(data.length, 6)
  head.writeUInt32BE(0, 8)
  const records = data.map((bytes) => {
    const record = Buffer.alloc(12)
    record.writeUInt16BE(0xc00c, 0) // the name of the question
    record.writeUInt16BE(type, 2)
    record.writeUInt16BE(1, 4)
    record.writeUInt32BE(0, 6) // or the resolver would remember the answer
    record.writeUInt16BE(bytes.length, 10)
    return Buffer.concat([record, bytes])
  })
  return Buffer.concat([head, ...records])
}

function labelsOf(host: string): Buffer {
  const labels = host.split('.').map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`))
  return Buffer.concat([...labels, Buffer.from([0])])
}

function addressBytes(address: string): Buffer {
  return address.includes(':')
    ? Buffer.from(groupsOf(address).join(''), 'hex')
    : Buffer.from(address.split('.').map(Number))
}

function reversed(address: string): string {
  return address.includes(':')
    ? `${[...groupsOf(address).join('')].reverse().join('.')}.ip6.arpa`
    : `${address.split('.').reverse().join('.')}.in-addr.arpa`
}

/** The eight groups of an IPv6 address, four digits each. */
function groupsOf(address: string): string[] {
  const [head = '', tail = ''] = address.split('::')
  const parts = (text: string): string[] => text.split(':').filter(Boolean)
  const missing = 8 - parts(head).length - parts(tail).length
  return [...parts(head), ...Array<string>(missing).fill('0'), ...parts(tail)].map((group) =>
    group.padStart(4, '0'),
  )
}
