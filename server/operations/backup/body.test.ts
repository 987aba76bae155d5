/** Encrypted bodies survive a round trip; alteration, reordering, repetition and truncation are detected. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { decrypted, encrypted, keyOf, newEncryption } from './body.ts'

const encryption = { ...newEncryption(), cost: 2 ** 10, chunkBytes: 64 }
const key = await keyOf('correct horse battery staple', encryption)

async function* inPieces(bytes: Uint8Array, pieceBytes: number): AsyncGenerator<Buffer> {
  for (let offset = 0; offset < bytes.length; offset += pieceBytes)
    yield Buffer.from(bytes.subarray(offset, offset + pieceBytes))
}

async function whole(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const piece of pieces) chunks.push(piece)
  return Buffer.concat(chunks)
}

const seal = (clear: Uint8Array, pieceBytes = 1_000) =>
  whole(encrypted(inPieces(clear, pieceBytes), key, encryption))
const open = (body: Uint8Array, pieceBytes = 1_000, secretKey = key) =>
  whole(decrypted(inPieces(body, pieceBytes), secretKey, encryption))

test('any bytes survive a round trip, however they are split', async () => {
  const pieceBytes = fc.integer({ min: 1, max: 200 })
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 700 }),
      pieceBytes,
      pieceBytes,
      async (clear, inputBytes, outOf) => {
        const body = await seal(clear, inputBytes)
        expect(body.length).toBe(clear.length + 16 * Math.max(1, Math.ceil(clear.length / 64)))
        expect(await open(body, outOf)).toEqual(Buffer.from(clear))
      },
    ),
  )
})

test('detects one altered byte anywhere', async () => {
  const body = await seal(crypto.getRandomValues(new Uint8Array(300)))
  for (let index = 0; index < body.length; index++) {
    const altered = Buffer.from(body)
    altered[index]! ^= 1
    expect(await refusal(open(altered))).toMatch(/is corrupt/)
  }
})

test('chunks cannot be omitted, swapped, repeated or truncated', async () => {
  const chunk = 64 + 16
  const body = await seal(new Uint8Array(64 * 4))
  const part = (index: number) => body.subarray(index * chunk, (index + 1) * chunk)
  const forgeries = [
    [part(1), part(2), part(3)],
    [part(0), part(2), part(3)],
    [part(1), part(0), part(2), part(3)],
    [part(0), part(0), part(1), part(2), part(3)],
    [part(0), part(1), part(2)],
    [],
  ]
  for (const parts of forgeries) expect(await refusal(open(Buffer.concat(parts)))).toMatch(/is corrupt/)
})

test('another passphrase or salt decrypts nothing; composed and decomposed letters are equal', async () => {
  const body = await seal(Buffer.from('secret'))
  for (const otherKey of [
    await keyOf('Correct horse', encryption),
    await keyOf('correct horse battery staple', newEncryption()),
  ])
    expect(await refusal(open(body, 1_000, otherKey))).toMatch(/passphrase is wrong/)
  expect(await keyOf('caf\u00e9', encryption)).toEqual(await keyOf('cafe\u0301', encryption))
})

async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    if (error instanceof Error) return error.message
  }
  return 'it was accepted'
}
