/** Frames: zstd-compressed pieces in one blob, each readable alone, and the texts inside a piece. */

/*
 * On disk: the number of frames, the length of each, then the frames. Numbers are little-endian, in the width that the
 * caller names. An empty frame has length 0 and no bytes.
 */
type Numbers = typeof Uint16Array | typeof Uint32Array

export function joinFrames(frames: readonly Uint8Array[], numbers: Numbers): Buffer {
  const head = numbers.of(frames.length, ...frames.map(({ length }) => length))
  return Buffer.concat([new Uint8Array(head.buffer), ...frames])
}

export function deflateFrame(text: string): Uint8Array {
  return text === '' ? new Uint8Array(0) : Bun.zstdCompressSync(text, { level: 1 })
}

export function frameCount(blob: Uint8Array, numbers: Numbers): number {
  return head(blob, numbers)(0)
}

/** Inflates frame `index`. Throws when it is missing or damaged. */
export function inflateFrame(blob: Uint8Array, index: number, numbers: Numbers): Buffer {
  const number = head(blob, numbers)
  const frames = number(0)
  if (index < 0 || index >= frames)
    throw new Error(`frame ${index} is out of range: the blob has ${frames} frames`)
  let start = numbers.BYTES_PER_ELEMENT * (1 + frames)
  for (let before = 0; before < index; before++) start += number(1 + before)
  const end = start + number(1 + index)
  if (start === end) return Buffer.alloc(0)
  return Bun.zstdDecompressSync(blob.subarray(start, end) as Uint8Array<ArrayBuffer>)
}

/** The numbers before the frames. The blob may begin at any byte of its buffer. */
function head(blob: Uint8Array, { BYTES_PER_ELEMENT: width }: Numbers): (index: number) => number {
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength)
  return (index) => (width === 2 ? view.getUint16(index * 2, true) : view.getUint32(index * 4, true))
}

/** Texts read singly before splitting them all is quicker. */
const singlesMax = 8

/** Returns the text at an index, '' beyond the last. `bytes` are UTF-8; no text contains NUL. */
export function nulTexts(bytes: Buffer): (index: number) => string {
  let asked = 0
  let all: string[] | null = null
  return (index) => {
    if (++asked > singlesMax) all ??= bytes.toString('utf8').split('\0')
    if (all !== null) return all[index] ?? ''
    let start = 0
    for (let before = 0; before < index; before++) {
      start = bytes.indexOf(0, start) + 1
      if (start === 0) return ''
    }
    const end = bytes.indexOf(0, start)
    return end < 0 ? '' : bytes.toString('utf8', start, end)
  }
}
