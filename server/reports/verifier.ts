/** A static page that verifies a report in a browser, without Sightglass or a network; it works from a file. */
import { createHash } from 'node:crypto'

const style = `
:root { color-scheme: light dark; font: 14px/1.5 ui-sans-serif, system-ui, 'Segoe UI', Roboto, sans-serif; }
body { margin: 0; background: light-dark(#f6f6f4, #121315); color: light-dark(#1b1c1e, #ececea); }
main { max-width: 600px; margin: 32px auto; padding: 8px 24px 16px; border: 1px solid light-dark(#e2e0db, #2b2f34); }
main { border-radius: 8px; background: light-dark(#ffffff, #191b1e); }
h1 { font-size: 17px; }
input { font: inherit; max-width: 100%; }
input[type='text'] { width: 100%; box-sizing: border-box; padding: 6px 10px; border-radius: 7px; }
input[type='text'] { border: 1px solid light-dark(#8b8880, #6b727b); background: none; color: inherit; }
input::file-selector-button { margin-right: 10px; padding: 4px 10px; border-radius: 7px; font: inherit; }
input::file-selector-button { border: 1px solid light-dark(#cfccc4, #3c4148); background: none; color: inherit; }
:focus-visible { outline: 2px solid light-dark(#0b6e69, #4fd1c5); outline-offset: 1px; }
label { display: block; margin: 16px 0 4px; font-weight: 600; }
#about-key { margin: 4px 0; color: light-dark(#64676c, #9297a0); }
output { display: block; margin-top: 24px; padding: 16px; border: 1px solid; border-radius: 8px; }
output { overflow-wrap: anywhere; }
output:empty { display: none; }
output p { margin: 8px 0 0; }
output p:empty { display: none; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 16px; margin: 8px 0 0; }
dd { margin: 0; overflow-wrap: anywhere; }
`

/** The same rules as `verifyReport` in proof.ts; tests give both the same files. */
const script = `
const format = 'sightglass-report-1'
const start = '<script type="application/json" id="sightglass-proof">'
const end = '</' + 'script>\\n</body>\\n</html>\\n'
const fields = ['format', 'orgId', 'org', 'since', 'until', 'at', 'events', 'digest', 'key', 'signature']
// Of all texts that decode to the same bytes only the one that a report has.
const isExact = ({ key, signature }) =>
  /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/.test(key) && /^[A-Za-z0-9_-]{85}[AQgw]$/.test(signature)
const bytesOf = (text) => new TextEncoder().encode(text)
const fromBase64 = (text) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0))

function parsed(written) {
  try {
    const proof = JSON.parse(written)
    const isKnown = Object.keys(proof).join() === fields.join() && proof.format === format
    const isTyped = Object.entries(proof).every(([name, value]) =>
      name === 'events' ? Number.isSafeInteger(value) : typeof value === 'string',
    )
    const isSame = JSON.stringify(proof).replaceAll('<', '\\\\u003c') === written
    return isKnown && isTyped && isSame ? proof : null
  } catch {
    return null
  }
}

async function verify(bytes, trusted) {
  let text
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return { fault: 'It is not UTF-8 text' }
  }
  const [body, rest, ...others] = text.split(start)
  if (rest === undefined || others.length > 0 || !rest.endsWith(end)) return { fault: 'It has no proof' }
  const written = rest.slice(0, -end.length)
  const proof = parsed(written)
  if (proof === null) return { fault: 'Its proof is malformed' }
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytesOf(body + start + end)))
  const digest = [...hash].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  if (digest !== proof.digest) return { fault: 'It was changed after it was signed' }
  const { orgId, org, since, until, at, events } = proof
  try {
    if (!isExact(proof)) return { fault: 'Its signature does not match' }
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: proof.key }
    const key = await crypto.subtle.importKey('jwk', jwk, { name: 'Ed25519' }, false, ['verify'])
    const signed = bytesOf(JSON.stringify([format, orgId, org, since, until, at, events, digest]))
    const isSigned = await crypto.subtle.verify({ name: 'Ed25519' }, key, fromBase64(proof.signature), signed)
    if (!isSigned) return { fault: 'Its signature does not match' }
  } catch (error) {
    if (error.name === 'NotSupportedError') return { fault: 'This browser cannot check Ed25519 signatures' }
    return { fault: 'Its signature does not match' }
  }
  if (trusted !== '' && trusted !== proof.key) return { fault: 'Another key signed it', proof }
  return { fault: null, proof }
}

const [file, key, out] = ['file', 'key', 'verdict'].map((id) => document.getElementById(id))
const line = (list, name, value) => {
  const [dt, dd] = [document.createElement('dt'), document.createElement('dd')]
  dt.textContent = name
  dd.textContent = value
  list.append(dt, dd)
}

// A verdict is never shown for another file or key than the present ones.
let asked = 0
async function show() {
  const own = ++asked
  out.replaceChildren()
  const chosen = file.files[0]
  if (chosen === undefined) return
  const trusted = key.value.trim()
  const found = await chosen
    .arrayBuffer()
    .then((bytes) => verify(bytes, trusted))
    .catch(() => ({ fault: 'The file cannot be read' }))
  if (own !== asked) return
  const { fault, proof } = found
  const verdict = document.createElement('strong')
  verdict.textContent = fault === null ? 'The report is unchanged.' : 'Do not trust this report. ' + fault + '.'
  const list = document.createElement('dl')
  const about = document.createElement('p')
  if (fault === null && trusted === '')
    about.textContent =
      'Anyone can sign a report with their own key. Compare the key below with one from another source.'
  if (proof) {
    line(list, 'Organization', proof.org)
    line(list, 'Range', proof.since + ' to ' + proof.until)
    line(list, 'Events', proof.events.toLocaleString('en'))
    line(list, 'Signed', proof.at)
    line(list, 'Key', proof.key)
  }
  out.replaceChildren(verdict, about, list)
}
file.addEventListener('change', show)
// A file that is chosen again is no change, although it may have changed.
file.addEventListener('click', () => {
  file.value = ''
  show()
})
key.addEventListener('input', show)
`

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

export const verifierPolicy = `default-src 'none'; style-src ${hashOf(style)}; script-src ${hashOf(script)}`

export function verifierPage(): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="${verifierPolicy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Verify a Sightglass report</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>Verify a Sightglass report</h1>
<p>The file stays in this browser. The page needs no network: save it, and it works from the file.</p>
<label for="file">Report</label>
<input id="file" type="file" accept=".html,text/html">
<label for="key">Known key (optional)</label>
<input id="key" type="text" autocomplete="off" spellcheck="false" aria-describedby="about-key">
<p id="about-key">The key that must have signed it, from an older report or a checkpoint in a log.</p>
<output id="verdict" for="file key"></output>
</main>
<script>${script}</script>
</body>
</html>
`
}
