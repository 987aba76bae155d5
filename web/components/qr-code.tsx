/** A QR code. Dark on light in both themes, because many cameras cannot read inverted codes. */
import './qr-code.css'
import { useMemo } from 'preact/hooks'
import { encode } from 'uqr'

const quiet = 4 // squares; readers need the border

export interface QrPath {
  size: number // in squares, with the border
  path: string
}

/** The dark squares of a QR code as one SVG path, one unit per square, with the quiet border that readers need. */
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

export function QrCode({ text, label }: { text: string; label: string }) {
  const { size, path } = useMemo(() => qrPath(text), [text])
  return (
    <svg class="qr-code" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label}>
      <path d={path} shape-rendering="crispEdges" />
    </svg>
  )
}
