/**
 * Imports an access log with --evidence-dns where the only DNS server is ours. Run by `evidence-dns.test.ts` in a
 * network namespace with its own /etc/resolv.conf.
 */
import { writeFileSync } from 'node:fs'
import { cli } from '../support/binary.ts'
import { startDnsServer } from '../support/dns-server.ts'
import { tempDir } from '../support/temp-dir.ts'

const spider = '198.51.100.10'
const impostor = '198.51.100.11'
const host = 'spider-10.yandex.com'
const dns = await startDnsServer(
  { names: { [spider!]: [host], [impostor!]: [host] }, addresses: { [host]: [spider!] } },
  53,
)
using temp = tempDir('evidence-dns')
const line = (address: string) =>
  `${address} - - [23/Nov/2026:10:00:00 +0000] "GET /${address} HTTP/1.1" 200 5 "-" "YandexBot/3.0"\n`
writeFileSync(temp.join('access.log'), [spider!, impostor!].map(line).join(''))
const cliOptions = { dataDir: temp.join('data') }
const args = ['import', 'access', temp.join('access.log'), '--site', 'shop', '--evidence-max-age', '36500']
const dryRunExit = await cli([...args, '--dry-run', '--json'], cliOptions)
const askedWithout = dns.asked.length
const imported = await cli([...args, '--evidence-dns'], cliOptions)
const events = (await cli(['export', 'traces'], cliOptions)).stdout
dns.close()
const verdicts = [
  ...events.matchAll(/"verdict":"(\w+)","evidence":\{"method":"dns"[^}]*\}\},"metadata":\{"page":"([^"]+)"/g),
]
process.stdout.write(
  `${JSON.stringify({
    codes: [dryRunExit.code, imported.code],
    askedWithout,
    verdicts: [...new Set(verdicts.map(([, verdict, page]) => `${page} ${verdict}`))].sort(),
    said: imported.stdout.includes('YandexBot'),
  })}\n`,
)
