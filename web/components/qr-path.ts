/** The dark squares of a QR code as one SVG path, one unit per square, with the quiet border that readers need. */
import { encode } from 'uqr'

const quiet = 4

export interface QrPath {
  size: number // in squares, with the border
  path: string
}

export function qrPath(text: string): QrPath {
  const { data, size } = encode(text, { ecc: 'M', border: quiet })
  const parts: string[] = []
  data.forEach((row, y) => {
    for (let x = 0; x < row.length; x++) {
      if (!row[x]) continue
      const start = x
      while (row[x + 1]) x++
      parts.push(`M${start} ${y}h${x + 1 - start}v1H${start}z`)
    }
  })
  return { size, path: parts.join('') }
}
