/**
 * Kills the appliance, or two nodes of it, while it writes, mails and delivers scheduled reports. Run by hand: `bun
 * tests/crash/reports.ts --rounds 100 [--nodes 2] [--seed N]`; a round kills each node once. Each report must exist
 * once per period and receiver.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { verifyReport } from '../../server/reports/proof.ts'
import type { Appliance } from '../support/binary.ts'
import { testAuthority } from '../support/certificate.ts'
import { startReceiver, type Received } from '../support/receiver.ts'
import { attachmentOf, headerOf, smtpLogin, startSmtp, type SmtpReceiver } from '../support/smtp-server.ts'
import { tempDir } from '../support/temp-dir.ts'
import { until } from '../support/until.ts'
import { crashNodes } from './crash-nodes.ts'
import { anySeed, seeded, type Seeded } from './seeded.ts'

export interface ReportRounds {
  kills: number
  reports: number
  /** Killed between the server's confirmation and the audit entry: mailed again with the same Message-ID. */
  repeated: number
  /** Killed between the response of the endpoint and its record: delivered again with the same id. */
  deliveredAgain: number
  wrong: string[]
}

const receivers = ['ops@example.com', 'team@example.com']

/** Each round adds a report of another site, so that every start has work. The mail server is reached with TLS. */
export async function reportRounds(
  rounds: number,
  { below: randomBelow }: Seeded,
  nodeCount = 1,
): Promise<ReportRounds> {
  using temp = tempDir('reports')
  const authority = testAuthority()
  const { key, cert } = authority.issue('localhost')
  writeFileSync(temp.join('ca.pem'), authority.cert)
  await using smtp = await startSmtp({ secure: true, key, cert, authOptional: false })
  smtp.confirmMs = 40
  await using receiver = await startReceiver()
  const folder = temp.join('made')
  const config = temp.join('sightglass.toml')
  const secret = `${smtpLogin.user}:${encodeURIComponent(smtpLogin.password)}`
  const env = {
    NODE_EXTRA_CA_CERTS: temp.join('ca.pem'),
    SIGHTGLASS_SMTP_URL: `smtps://${secret}@localhost:${smtp.port}`,
  }
  await using nodes = await crashNodes(nodeCount, temp, {
    env,
    args: ['--config', config, ...webhookOptions],
  })
  const start = (sites: number): Promise<Appliance[]> => {
    writeFileSync(config, configText(folder, sites))
    return nodes.start()
  }
  for (let round = 1; round <= rounds; round++) {
    const appliances = await start(round)
    if (round === 1) await addEndpoint(appliances[0]!, `${receiver.url}/slow/40`)
    // Work begins within a second, and takes about 200 ms.
    await Promise.all(
      appliances.map(async (appliance) => {
        await Bun.sleep(400 + randomBelow(1_200))
        await appliance.kill()
      }),
    )
  }
  const last = await start(rounds)
  try {
    const listEntries = () => entriesOf(last[0]!)
    // The lease of a node that was killed ends within a minute. Reading the audit log runs the command each time.
    await until(() => smtp.messages.length >= rounds * receivers.length, 90_000)
    await until(() => new Set(idsOf(receiver.received())).size >= rounds, 90_000)
    await until(async () => (await listEntries()).length >= rounds * (2 + receivers.length), 90_000)
    await Bun.sleep(2_500) // a doubled one would arrive now
    const kills = rounds * nodeCount
    const delivered = deliveries(receiver.received(), rounds, kills)
    const { wrong, ...counts } = findReports(folder, smtp, { rounds, kills }, await listEntries())
    const deliveredAgain = delivered.again
    return { kills, ...counts, deliveredAgain, wrong: [...wrong, ...delivered.wrong] }
  } finally {
    await Promise.all(last.map((appliance) => appliance.stop()))
  }
}

const webhookOptions = [
  '--webhook-allow',
  '127.0.0.0/8',
  '--dispatch-cron',
  '* * * * * *',
  '--webhook-backoff',
  '1s,1s,1s',
]

async function addEndpoint(appliance: Appliance, url: string): Promise<void> {
  const { code, stderr } = await appliance.cli('webhook', 'add', url, '--org', 'default', '--label', 'ops')
  if (code !== 0) throw new Error(stderr)
}

const idsOf = (received: Received[]) => received.map(({ headers }) => headers['webhook-id'])

/** Every period under one id, with a whole report. */
function deliveries(received: Received[], rounds: number, kills: number): { again: number; wrong: string[] } {
  const ids = new Map(received.map(({ headers, body }) => [headers['webhook-id']!, body]))
  const wrong = ids.size === rounds ? [] : [`${ids.size} deliveries of ${rounds} reports`]
  const reports = new Set<string>()
  for (const [id, body] of ids) {
    const { data } = JSON.parse(body) as { data: { reportId: string; html: string } }
    reports.add(data.reportId)
    if (!verifyReport(Buffer.from(data.html), null).ok) wrong.push(`${id} is not a whole report`)
  }
  if (reports.size !== ids.size) wrong.push(`${ids.size} deliveries of ${reports.size} reports`)
  const again = received.length - ids.size
  // A kill can interrupt each attempt that is running: at most two at a time go to an endpoint.
  if (again > 2 * kills) wrong.push(`${again} repeated deliveries`)
  return { again, wrong }
}

const configText = (folder: string, sites: number): string =>
  Array.from({ length: sites }, (_, site) => {
    // A month hardly ends during the test.
    const fields = { every: 'month', sites: [`site-${site}`], folder, email: receivers, webhook: ['ops'] }
    return `[[report]]\n${Object.entries(fields)
      .map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`)
      .join('')}`
  })
    .toSpliced(0, 0, 'smtp-from = "reports@appliance.example"\n')
    .join('\n')

interface Entry {
  action: string
  target: string
  metadata: { file?: string; messageId?: string }
}

async function entriesOf(appliance: Appliance): Promise<Entry[]> {
  const { stdout } = await appliance.cli('export', 'audit', '--json')
  const { entries } = JSON.parse(stdout) as { entries: Entry[] }
  return entries.filter(({ action }) => action === 'report.sent')
}

function findReports(
  folder: string,
  { messages }: SmtpReceiver,
  { rounds, kills }: { rounds: number; kills: number },
  entries: Entry[],
) {
  const wrong: string[] = []
  const names = readdirSync(folder)
  if (names.length !== rounds) wrong.push(`${names.length} files of ${rounds} reports: ${names.join()}`)
  for (const name of names) {
    const { ok, fault } = verifyReport(readFileSync(join(folder, name)), null)
    if (!ok) wrong.push(`${name}: ${fault}`)
  }
  const targets = new Set(entries.map(({ target }) => target))
  if (targets.size !== entries.length) wrong.push(`${entries.length} entries of ${targets.size} deliveries`)
  const mails = new Map<string, number>()
  for (const message of messages) {
    const name = `${headerOf(message, 'Message-ID')} ${message.to.join()}`
    mails.set(name, (mails.get(name) ?? 0) + 1)
    if (!message.secure || !verifyReport(attachmentOf(message), null).ok)
      wrong.push(`${name} is not a whole report`)
  }
  if (mails.size !== rounds * receivers.length)
    wrong.push(`${mails.size} mails of ${rounds * receivers.length}`)
  const repeated = messages.length - mails.size
  // A kill can interrupt one confirmation.
  if (repeated > kills) wrong.push(`${repeated} repeated mails`)
  return { reports: rounds, repeated, wrong }
}

if (import.meta.main) {
  const options = { rounds: { type: 'string' }, nodes: { type: 'string' }, seed: { type: 'string' } } as const
  const { values } = parseArgs({ options })
  const seed = Number(values.seed ?? anySeed())
  const result = await reportRounds(Number(values.rounds ?? 100), seeded(seed), Number(values.nodes ?? 1))
  console.log(JSON.stringify({ seed, ...result }))
  process.exit(result.wrong.length === 0 ? 0 : 1)
}
