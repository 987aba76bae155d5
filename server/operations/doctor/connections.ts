/** The connections of this process that lead away from it, as the kernel has them; Linux only. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

export interface Connection {
  address: string
  port: number
}

const states = { established: '01', synSent: '02', listening: '0A' } as const

/** Null where the kernel does not tell. */
export function outwardConnections(proc = '/proc/self'): Connection[] | null {
  const own = ownSockets(proc)
  if (own === null) return null
  const rows = ['tcp', 'tcp6', 'udp', 'udp6'].flatMap((table) => tableRows(`${proc}/net/${table}`, table))
  const ours = rows.filter(({ inode }) => own.has(inode))
  const listening = new Set(
    ours.filter(({ state }) => state === states.listening).map(({ localPort }) => localPort),
  )
  const leads = ({ state, localPort, port }: Row) =>
    (state === states.established || state === states.synSent) && port !== 0 && !listening.has(localPort)
  return ours.filter(leads).map(({ address, port }) => ({ address, port }))
}

function ownSockets(proc: string): Set<string> | null {
  try {
    const links = readdirSync(`${proc}/fd`).map((fd) => {
      try {
        return readlinkSync(`${proc}/fd/${fd}`)
      } catch {
        return '' // closed meanwhile
      }
    })
    return new Set(
      links.map((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1]).filter((inode) => inode !== undefined),
    )
  } catch {
    return null
  }
}

interface Row extends Connection {
  state: string
  localPort: number
  inode: string
}

function tableRows(path: string, table: string): Row[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return [] // a machine without IPv6
  }
  return text
    .split('\n')
    .slice(1)
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const cells = line.trim().split(/\s+/)
      const [local = '', remote = '', state = ''] = cells.slice(1)
      const [address = '', port = '0'] = remote.split(':')
      return {
        address: table.endsWith('6') ? ipv6(address) : ipv4(address),
        port: Number.parseInt(port, 16),
        localPort: Number.parseInt(local.split(':')[1] ?? '0', 16),
        state,
        inode: cells[9] ?? '',
      }
    })
}

/** Each 32-bit word stands in the order of the machine, and every machine we run on is little-endian. */
function bytesOf(hex: string): number[] {
  const words = hex.match(/.{8}/g) ?? []
  return words.flatMap((word) =>
    (word.match(/../g) ?? []).toReversed().map((byte) => Number.parseInt(byte, 16)),
  )
}

function ipv4(hex: string): string {
  return bytesOf(hex).join('.')
}

function ipv6(hex: string): string {
  const bytes = bytesOf(hex)
  const mapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255
  if (mapped) return bytes.slice(12).join('.')
  const groups = Array.from({ length: 8 }, (_, at) =>
    ((bytes[at * 2]! << 8) | bytes[at * 2 + 1]!).toString(16),
  )
  // The shortest form, as everything else here writes it.
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}
