/** A QR code. Dark on light in both themes, because many cameras cannot read inverted codes. */
import './qr-code.css'
import { useMemo } from 'preact/hooks'
import { qrPath } from './qr-path.ts'

export function QrCode({ text, label }: { text: string; label: string }) {
  const { size, path } = useMemo(() => qrPath(text), [text])
  return (
    <svg class="qr-code" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label}>
      <path d={path} shape-rendering="crispEdges" />
    </svg>
  )
}
