/** Runs one command line, verb to answer; exit code 0 done, 1 refused or failed, 2 not understood. */
import { readInvocation, serveConfig, type Invocation } from './config.ts'
import { UsageError } from '../errors.ts'
import type { Environment } from '../system/environment.ts'
import { version } from '../system/version.ts'
import { configJson, configText } from './commands/config.ts'
import { helpJson, helpText } from './commands/help.ts'
import { environmentTwin } from './options.ts'
import { operateVerbs } from './commands/operate-verbs.ts'
import { print, printError } from './print.ts'
import { problemOf } from '../runtime/problem.ts'
import { recordVerbs } from './commands/record-verbs.ts'

export async function run(args: string[], environment: Environment): Promise<number> {
  try {
    return await runVerb(readInvocation(args, environment))
  } catch (error) {
    const problem = problemOf(error)
    if (wantsJson(args, environment)) print(JSON.stringify(problem), 2)
    else printError(problem.message, problem.hint ?? null)
    return error instanceof UsageError ? 2 : 1
  }
}

/** Asked of the words themselves: they may be what could not be read. */
function wantsJson(args: string[], environment: Environment): boolean {
  const flag = args.findLast((arg) => /^--json(=|$)/.test(arg))
  const text = flag === undefined ? environment[environmentTwin('json')] : (flag.split('=')[1] ?? 'true')
  return text === 'true'
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
      const { serve } = await import('../runtime/serve.ts')
      return serve(serveConfig(invocation))
    }
    case 'demo':
    case 'demo remove': {
      const { demo } = await import('./commands/demo.ts')
      return demo(invocation)
    }
    default: {
      const own = operateVerbs[verb] ?? recordVerbs[verb]
      if (own) return own(invocation)
      const { dataVerbs, runDataVerb } = await import('./commands/data-verbs.ts')
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
