/** Runs one command line, verb to answer; exit code 0 done, 1 refused or failed, 2 not understood. */
import { StoreError } from '../../db/errors.ts'
import { readInvocation, serveConfig, type Environment, type Invocation } from '../config.ts'
import { AppError } from '../errors.ts'
import { UsageError } from '../option-values.ts'
import { version } from '../version.ts'
import { configJson, configText } from './config.ts'
import { helpJson, helpText } from './help.ts'
import { operateVerbs } from './operate-verbs.ts'
import { print, printError } from './print.ts'
import { recordVerbs } from './record-verbs.ts'

export async function run(args: string[], environment: Environment): Promise<number> {
  try {
    return await runVerb(readInvocation(args, environment))
  } catch (error) {
    return report(error)
  }
}

async function runVerb(invocation: Invocation): Promise<number> {
  const { verb, words, help, values } = invocation
  const say = (json: () => unknown, text: () => string) => {
    print(values.json ? JSON.stringify(json()) : text())
    return 0
  }
  if (help && verb !== 'help')
    return say(
      () => helpJson([verb]),
      () => helpText([verb]),
    )
  switch (verb) {
    case 'help':
      return say(
        () => helpJson(words),
        () => helpText(words),
      )
    case 'version':
      return say(
        () => ({ version, bun: Bun.version, platform: `${process.platform}-${process.arch}` }),
        () => `sightglass ${version}`,
      )
    case 'config':
      return say(
        () => configJson(invocation),
        () => configText(invocation),
      )
    case 'openapi': {
      const { openApiDocument } = await import('../docs/openapi.ts')
      print(JSON.stringify(openApiDocument(version), null, values.json ? undefined : 2))
      return 0
    }
    case 'serve': {
      // The dashboard and its API are a large part of the program; the other verbs start without them.
      const { serve } = await import('./serve.ts')
      return serve(serveConfig(invocation))
    }
    case 'demo':
    case 'demo remove': {
      const { demo } = await import('./demo.ts')
      return demo(invocation)
    }
    default: {
      const own = operateVerbs[verb] ?? recordVerbs[verb]
      if (own) return own(invocation)
      const { dataVerbs, runDataVerb } = await import('./data-verbs.ts')
      const work = dataVerbs[verb]
      if (!work) throw new Error(`nothing is written for "${verb}"`)
      const answer = await runDataVerb(verb, work, invocation)
      return say(
        () => answer,
        () => work.text(answer),
      )
    }
  }
}

function report(error: unknown): number {
  if (error instanceof UsageError) {
    printError(error.message, error.hint)
    return 2
  }
  if (error instanceof AppError) printError(error.message, error.details.hint ?? null)
  else if (error instanceof StoreError) printError(error.message, storeHints[error.kind] ?? null)
  else printError(error instanceof Error ? error.message : String(error), null)
  return 1
}

const storeHints: { readonly [K in StoreError['kind']]?: string } = {
  locked: 'stop the other process, or name another folder with --data-dir',
  newer_schema: 'use the release that wrote it, or a newer one; nothing was changed',
  corrupt: 'nothing was changed; restore a backup into another folder and look',
  read_only: 'check who owns the folder and whether its disk is mounted for writing',
  storage_full: 'free some space on the disk that holds the data folder',
}
