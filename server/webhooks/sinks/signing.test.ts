/** Our signatures pass the verifier that receivers use, also while a secret rotates, and nothing else does. */
import fc from 'fast-check'
import { describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { newSigningSecret } from '../../ids.ts'
import { signedHeaders, signingKey, snippets } from './signing.ts'
import { writeFileSync } from 'node:fs'
import { tempDir } from '../../../tests/support/temp-dir.ts'

const message = { id: 'wh_1', body: '{"a":"ü 🎈"}' }

describe('the standardwebhooks package', () => {
  test('accepts what we sign, whatever the body', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.uint8Array({ minLength: 24, maxLength: 64 }),
        (text, key) => {
          const secret = `whsec_${Buffer.from(key).toString('base64')}`
          const body = JSON.stringify({ text })
          const headers = signedHeaders([secret], { id: 'wh_x', body }, Date.now())
          expect(new Webhook(secret).verify(body, headers)).toEqual({ text })
        },
      ),
    )
  })

  test('accepts either secret while one rotates', () => {
    const older = newSigningSecret()
    const newer = newSigningSecret()
    const other = newSigningSecret()
    const headers = signedHeaders([newer, older], message, Date.now())
    for (const secret of [older, newer])
      expect(new Webhook(secret).verify(message.body, headers)).toBeTruthy()
    expect(() => new Webhook(other).verify(message.body, headers)).toThrow()
  })

  test('rejects another body, another id and an attempt ten minutes old', () => {
    const secret = newSigningSecret()
    const headers = signedHeaders([secret], message, Date.now())
    const verify = (body: string, sentHeaders: Record<string, string>) => () =>
      new Webhook(secret).verify(body, sentHeaders)
    expect(verify(`${message.body} `, headers)).toThrow()
    expect(verify(message.body, { ...headers, 'webhook-id': 'wh_2' })).toThrow()
    expect(verify(message.body, signedHeaders([secret], message, Date.now() - 600_000))).toThrow()
  })
})

test('matches a known key, signed text and signature', () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const headers = signedHeaders(
    [secret],
    { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', body: '{"test": 2432232314}' },
    1_614_265_330_999,
  )
  expect(headers).toEqual({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
})

test('only whsec_ texts of 24 to 64 bytes are signing secrets', () => {
  expect(signingKey(newSigningSecret())).toHaveLength(32)
  for (const wrong of [
    '',
    'whsec_',
    `whsec_${'A'.repeat(31)}`,
    `whsec_${'A'.repeat(90)}`,
    `whpk_${'A'.repeat(32)}`,
    'whsec_!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!',
  ]) {
    expect(() => signingKey(wrong)).toThrow()
  }
})

/** Every published snippet accepts our signatures and rejects everything else, run by its own interpreter. */
const codeOf = (language: string) => snippets.find((snippet) => snippet.language === language)!.code

type Check = (secret: string, headers: Record<string, string>, body: string) => boolean

/** Runs the code with a few lines behind it that exit with 0 when the message is genuine, else with 3. */
function runner(language: string, interpreter: string, file: string, call: string, prelude = ''): Check {
  return (secret, headers, body) => {
    using folder = tempDir('snippet')
    writeFileSync(folder.join('body'), body)
    writeFileSync(folder.join('headers.json'), JSON.stringify(headers))
    writeFileSync(folder.join(file), `${prelude}${codeOf(language)}\n${call}\n`)
    const { exitCode, stderr } = Bun.spawnSync([interpreter, file], {
      cwd: folder.path,
      env: {
        PATH: process.env.PATH ?? '',
        SECRET: secret,
        ID: headers['webhook-id'] ?? '',
        TIMESTAMP: headers['webhook-timestamp'] ?? '',
        SIGNATURES: headers['webhook-signature'] ?? '',
      },
    })
    if (exitCode !== 0 && exitCode !== 3)
      throw new Error(`${language}: exit ${exitCode}: ${stderr.toString()}`)
    return exitCode === 0
  }
}

const javascript = (interpreter: string) =>
  runner(
    'JavaScript',
    interpreter,
    'verify.mjs',
    `const headers = JSON.parse(readFileSync('headers.json', 'utf8'))
process.exit(isGenuine(process.env.SECRET, headers, readFileSync('body')) ? 0 : 3)`,
    "import { readFileSync } from 'node:fs'\n",
  )
const python = runner(
  'Python',
  'python3',
  'verify.py',
  `import json, os, sys
headers = json.load(open("headers.json"))
sys.exit(0 if is_genuine(os.environ["SECRET"], headers, open("body", "rb").read()) else 3)`,
)
const shell = runner(
  'Shell',
  'sh',
  'verify.sh',
  'is_genuine "$SECRET" "$ID" "$TIMESTAMP" "$SIGNATURES" body || exit 3',
)

const missing = (...programs: string[]) => programs.filter((program) => Bun.which(program) === null)

describe.each([
  ['JavaScript in Bun', javascript(process.execPath), []],
  ['JavaScript in Node.js', javascript('node'), missing('node')],
  ['Python', python, missing('python3')],
  ['Shell', shell, missing('sh', 'openssl', 'od')],
] as const)('%s', (_language, isGenuine, lacks) => {
  // Python and OpenSSL come with nearly every machine, but nothing of ours needs them.
  const reason = lacks.length === 0 ? '' : ` (not run: this machine has no ${lacks.join(', no ')})`
  test.if(lacks.length === 0)(
    `accepts what we sign, and nothing else${reason}`,
    () => {
      const secret = newSigningSecret()
      const body = '{"text":"ü \\u2028 $HOME %s"}'
      const message = { id: 'wh_1', body }
      const headers = signedHeaders([newSigningSecret(), secret], message, Date.now())
      expect(isGenuine(secret, headers, body)).toBe(true)
      expect(isGenuine(newSigningSecret(), headers, body)).toBe(false)
      expect(isGenuine(secret, headers, `${body} `)).toBe(false)
      expect(isGenuine(secret, { ...headers, 'webhook-id': 'wh_2' }, body)).toBe(false)
      expect(isGenuine(secret, signedHeaders([secret], message, Date.now() - 400_000), body)).toBe(false)
    },
    30_000,
  )
})

test('three languages, each once', () => {
  expect(snippets.map(({ language }) => language)).toEqual(['JavaScript', 'Python', 'Shell'])
})
