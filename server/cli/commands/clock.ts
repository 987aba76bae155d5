/** `sightglass clock`: shows whether the clock jumped, and confirms that it is right. */
import { clockView, confirmClock } from '../../operations/health/clock.ts'
import { textOf } from '../../runtime/work.ts'
import { startClockGuard, systemTime, type ClockGuard } from '../../system/clock-guard.ts'
import type { Invocation, Noun } from '../command.ts'
import { dataCommand } from '../data-command.ts'
import { cell, type Answer } from '../print.ts'

const params = ({ values }: Pick<Invocation, 'values'>) => ({ dataDir: values['data-dir'] })

export const clock: Noun = {
  group: 'Operations',
  commands: [
    dataCommand({
      name: 'clock',
      summary: 'show whether the clock jumped and whether retention waits for it',
      about: [
        'Compares the clock with the time that has passed. After a jump of more than 10 minutes nothing expires by age until the clock is back, "clock confirm" accepts it, or it has run steadily for 24 hours.',
      ],
      examples: ['sightglass clock --json'],
      options: {},
      access: 'read',
      params,
      async work({ server }, sent) {
        return { ...clockView(server?.clockGuard ?? guardOf(textOf(sent, 'dataDir'))) }
      },
      print,
    }),
    dataCommand({
      name: 'clock confirm',
      summary: 'confirm that the clock is right after a jump',
      about: ['Retention, pruning and expiry resume at once. The audit trail records the confirmation.'],
      examples: ['date && sightglass clock confirm'],
      options: {},
      access: 'write',
      params,
      // Without a server the confirmation is stored in the folder for its next start.
      async work({ server, store }, sent) {
        const clockGuard = server?.clockGuard ?? guardOf(textOf(sent, 'dataDir'))
        return { ...(await confirmClock({ clockGuard, store }, 'cli')) }
      },
      print,
    }),
  ],
}

function print({ now, hold }: Answer): string {
  const message = (hold as Answer | null)?.['message']
  return message === undefined
    ? `Clock: ${cell(now)}. Retention follows it.`
    : `Clock: ${cell(now)}. ${cell(message)}\nIf the time is right: sightglass clock confirm`
}

function guardOf(dataDir: string): ClockGuard {
  const quiet = { info() {}, warn() {}, error() {} }
  return startClockGuard({ time: systemTime(), dataDir, log: quiet })
}
