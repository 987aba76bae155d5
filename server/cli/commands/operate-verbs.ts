/** The verbs that run the appliance itself, each loaded when it is asked for; they print and give the exit code. */
import type { Invocation } from '../config.ts'
import type { VerbName } from '../verb-names.ts'

type Run = (invocation: Invocation) => Promise<number>

export const operateVerbs: { readonly [V in VerbName]?: Run } = {
  'backup list': async (invocation) => (await import('./backup.ts')).backupList(invocation),
  'backup verify': async (invocation) => (await import('./backup.ts')).backupVerify(invocation),
  restore: async (invocation) => (await import('./restore.ts')).restore(invocation),
  'migrate status': async (invocation) => (await import('./migrate.ts')).migrateStatus(invocation),
  'migrate up': async (invocation) => (await import('./migrate.ts')).migrateUp(invocation),
  'accept-loss': async (invocation) => (await import('./accept-loss.ts')).acceptLoss(invocation),
  'service install': async (invocation) => (await import('./service.ts')).serviceInstall(invocation),
  'service uninstall': async (invocation) => (await import('./service.ts')).serviceUninstall(invocation),
  'service status': async (invocation) => (await import('./service.ts')).serviceStatus(invocation),
  completions: async (invocation) => (await import('./completions.ts')).completions(invocation),
  man: async () => (await import('./man.ts')).man(),
  licenses: async (invocation) => (await import('./licenses.ts')).licenses(invocation),
  ready: async (invocation) => (await import('./ready.ts')).ready(invocation),
  doctor: async (invocation) => (await import('./doctor.ts')).doctor(invocation),
}
