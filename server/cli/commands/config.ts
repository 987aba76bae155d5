/** `sightglass config`: the effective configuration, and for each value where it came from. */
import type { Json } from '../../../db/contract/store.ts'
import { serveConfig, type Invocation, type Setting } from '../config.ts'
import { optionFits, optionOf } from '../options.ts'
import { columns } from '../print.ts'

export function configJson(invocation: Invocation): Json {
  const options = serveSettings(invocation).map((setting) => ({
    name: setting.name,
    value: shown(setting),
    source: setting.source,
    from: setting.from,
  }))
  return { options, warnings: invocation.warnings }
}

export function configText(invocation: Invocation): string {
  const rows = serveSettings(invocation).map((setting) => {
    const from = setting.source === 'default' ? 'default' : `${setting.source} ${setting.from}`
    return [setting.name, shown(setting) ?? '', from]
  })
  return [
    columns(['OPTION', 'VALUE', 'FROM'], rows),
    ...invocation.warnings.map((line) => `warning: ${line}`),
  ].join('\n')
}

/** Also refuses what only the options together show to be wrong, as `serve` would. */
function serveSettings(invocation: Invocation): Setting[] {
  serveConfig(invocation)
  const beside = ['help', 'json']
  return invocation.settings.filter(({ name }) => optionFits(name, 'serve') && !beside.includes(name))
}

function shown({ name, text }: Setting): string | null {
  return text !== null && optionOf(name).secret ? '(hidden)' : text
}
