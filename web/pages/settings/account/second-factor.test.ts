/** A QR reader decodes the path to the input, up to the longest account URI. */
import { expect, test } from 'bun:test'
import jsQR from 'jsqr'
import { qrPath, type QrPath } from './second-factor.tsx'

/** Draws the path as a browser would, 4 pixels per square. */
function drawn({ size, path }: QrPath): { pixels: Uint8ClampedArray; width: number } {
  const scale = 4
  const width = size * scale
  const pixels = new Uint8ClampedArray(width * width * 4).fill(255)
  for (const [, x, y, length] of path.matchAll(/M(\d+) (\d+)h(\d+)v1H\1z/g)) {
    for (let row = 0; row < scale; row++) {
      const start = ((Number(y) * scale + row) * width + Number(x) * scale) * 4
      for (let moduleIndex = 0; moduleIndex < Number(length) * scale; moduleIndex++)
        pixels.fill(0, start + moduleIndex * 4, start + moduleIndex * 4 + 3)
    }
  }
  return { pixels, width }
}

const uri = (email: string) =>
  `otpauth://totp/Sightglass:${encodeURIComponent(email)}?issuer=Sightglass&secret=${'ABCDEFGH'.repeat(4)}`

test.each([['short'], [uri('ann@example.com')], [uri(`${'ö'.repeat(60)}@${'x'.repeat(180)}.example`)]])(
  'decodes to the input (%#)',
  (text) => {
    const qrCode = qrPath(text)
    const { pixels, width } = drawn(qrCode)
    expect(jsQR(pixels, width, width)?.data).toBe(text)
    expect(qrCode.path).not.toMatch(/M[0-3] |M\d+ [0-3]h/) // the quiet border
  },
)
