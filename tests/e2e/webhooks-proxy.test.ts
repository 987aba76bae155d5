/** The executable goes through a proxy when it was started with one, and never because of the usual variables. */
import { expect, test } from 'bun:test'
import { startAppliance } from '../support/binary.ts'
import { startProxy } from '../support/proxy.ts'
import { startReceiver } from '../support/receiver.ts'

const args = ['--dispatch-cron', '* * * * * *', '--webhook-allow', '127.0.0.0/8']

test.each([
  ['the flag’s twin', true],
  ['the usual variables', false],
])(
  'by %s: %p',
  async (_by, isOurs) => {
    await using receiver = await startReceiver()
    const { host, port } = new URL(receiver.url)
    await using proxy = await startProxy({ httpPort: Number(port), httpsPort: 1 })
    const url = `http://127.0.0.1:${proxy.port}`
    const usual = isOurs ? 'http://127.0.0.1:1' : url
    const env = { HTTP_PROXY: usual, http_proxy: usual, HTTPS_PROXY: usual, ALL_PROXY: usual, NO_PROXY: '' }
    await using appliance = await startAppliance({
      args,
      env: isOurs ? { ...env, SIGHTGLASS_WEBHOOK_PROXY: url } : env,
    })
    const testResult = await appliance.cli('webhook', 'test', `${receiver.url}/ok/x`, '--json')
    const { deliveryId } = JSON.parse(testResult.stdout) as { deliveryId: string }
    const [received] = await receiver.wait('/ok/x', 1)
    expect(received!.headers).toMatchObject({ host, 'webhook-id': deliveryId })
    const heads = proxy.heads().map((head) => head.split('\r\n')[0])
    expect(heads).toEqual(isOurs ? [`POST ${receiver.url}/ok/x HTTP/1.1`] : [])
  },
  60_000,
)
