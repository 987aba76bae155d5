/** `sightglass report`: makes a signed report as one HTML file, and the page that verifies it in a browser. */
import type { Json } from '../../../db/contract/store.ts'
import { auditEntry } from '../../audit/entry.ts'
import { openSigningKey, ringSigningKey } from '../../audit/signing.ts'
import { periodOf, periodParameters } from '../../counts/period.ts'
import { readQuery } from '../../http/request.ts'
import { signReport } from '../../reports/proof.ts'
import { draftReport, type ReportDraft } from '../../reports/report.ts'
import { verifierPage } from '../../reports/verifier.ts'
import { countText } from '../../text/html.ts'
import { textOf, type Params, type WorkContext } from '../../runtime/work.ts'
import { command, type Invocation, type Noun } from '../command.ts'
import { requireOrg, withData } from '../data-command.ts'
import { folderPath, text, textList, toggle } from '../option.ts'
import { keyRingOf, orgOption } from '../options.ts'
import { print } from '../print.ts'
import { openOutput } from './export.ts'

const fileOptions = {
  out: { read: folderPath, value: 'FILE', default: null, help: 'file to write, by default standard output' },
  yes: { ...toggle('replace an existing file'), flagOnly: true },
} as const

const options = {
  range: { ...text('RANGE', '24h, 7d, 30d, 90d, 12m or all; not with --since'), flagOnly: true },
  since: { ...text('TIME', 'start of another range, such as 2026-11-01'), flagOnly: true },
  until: { ...text('TIME', 'end of it, by default now'), flagOnly: true },
  zone: { ...text('ZONE', 'time zone of its days, such as Europe/Berlin'), flagOnly: true },
  site: {
    read: textList,
    value: 'ID[,ID]',
    default: '',
    help: 'only these sites',
    adds: true,
    flagOnly: true,
  },
  ...fileOptions,
  ...orgOption,
} as const

export const report: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'report create',
      summary: 'write a signed report as one HTML file',
      about: [
        'The report has the exact counts of a range with those of the range before, charts and tables. The file requests nothing, opens without a network and prints well. It is signed with the key of the audit checkpoints: "sightglass verify FILE" shows whether a byte has changed since.',
        'The default is the last 7 days. The audit log records each report.',
      ],
      examples: [
        'sightglass report create --out week.html',
        'sightglass report create --since 2026-11-01 --until 2026-12-01 --zone Europe/Berlin --out november.html',
      ],
      options,
      work: { '': draft },
      run,
    }),
    command({
      name: 'report verifier',
      summary: 'write the page that verifies reports in a browser',
      about: [
        'For people without Sightglass: the page needs no network and works from a file. A running server has it at /docs/verify-report.',
      ],
      examples: ['sightglass report verifier --out verify.html'],
      options: fileOptions,
      run({ values: { out, yes, json } }) {
        const output = openOutput(out, yes)
        output.write(verifierPage())
        output.end()
        if (out !== null) print(json ? JSON.stringify({ path: out }) : `Wrote the verifier to ${out}.`)
        return 0
      },
    }),
  ],
}

async function run({ values, commands }: Invocation<typeof options>): Promise<number> {
  const { out, yes, json, org, range, since, until, zone, site } = values
  const ring = values.database === null ? null : keyRingOf(values)
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries({ range, since, until, zone }))
    if (value !== null) query.set(name, value)
  for (const id of site) query.append('siteId', id)
  return withData({ values, commands }, 'write', async (data) => {
    const key = ring === null ? openSigningKey(values['data-dir']) : ringSigningKey(ring)
    const params = { org, search: query.toString(), key: key.publicKey }
    const { body, facts } = (await data.call('report create', params)) as unknown as Pick<
      ReportDraft,
      'body' | 'facts'
    >
    const output = openOutput(out, yes)
    output.write(signReport(body, facts, key))
    output.end()
    if (out !== null)
      print(
        json
          ? JSON.stringify({ path: out, ...facts, key: key.publicKey })
          : `Wrote ${countText(facts.events)} events, ${facts.since} to ${facts.until}, to ${out}. ` +
              `Signed by ${key.publicKey}.`,
      )
    return 0
  })
}

async function draft({ store, clock }: WorkContext, params: Params): Promise<Json> {
  const org = await requireOrg(store, textOf(params, 'org'))
  const request = new Request(`http://localhost/?${textOf(params, 'search')}`)
  const period = await periodOf(store, org.id, readQuery(request, periodParameters), clock.now())
  const reportDraft = await draftReport(store, org, period, textOf(params, 'key'))
  const { since, until, events } = reportDraft.facts
  const act = { action: 'report.made', target: org.id, metadata: { since, until, events } }
  await store.audit.append(auditEntry({ orgId: org.id, actor: 'cli' }, act, clock.now()))
  return { body: reportDraft.body, facts: { ...reportDraft.facts } }
}
