/** Chooses ports for programs that must know them ahead. */
import { randomInt } from 'node:crypto'

/**
 * A port that is free now, for programs that must know it ahead. It is below the range from which Linux takes the own
 * ports of connections, so that none of thousands of connections beside the test takes it meanwhile.
 */
export function freePort(): number {
  for (;;) {
    const port = randomInt(10_000, 32_768)
    try {
      Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } }).stop(true)
      return port
    } catch {
      // Somebody listens there.
    }
  }
}
