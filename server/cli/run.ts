/** Runs one command line. Exit code 0: done, 1: refused or failed, 2: usage error. */
import * as table from './nouns.ts'
import { UsageError } from '../errors.ts'
import { problemOf } from '../runtime/work.ts'
import { isolateEnvironment, type Environment } from '../system/environment.ts'
import { readInvocation, secretVariables } from './config.ts'
import { environmentTwin } from './option.ts'
import { print, printError } from './print.ts'
import { groups, type Command, type KnownCommand, type Noun } from './command.ts'
import { commonOptions } from './options.ts'

export async function run(args: string[]): Promise<number> {
  const environment = isolateEnvironment(secretVariables(commands))
  try {
    const invocation = readInvocation(args, environment, commands)
    if (!invocation.help || invocation.command.name === 'help')
      return await invocation.command.run(invocation)
    const help = commands.find(({ name }) => name === 'help')!
    return await help.run({ ...invocation, command: help, words: invocation.command.name.split(' ') })
  } catch (error) {
    const problem = problemOf(error)
    if (wantsJson(args, environment)) print(JSON.stringify(problem), 2)
    else printError(problem.message, problem.hint ?? null)
    return error instanceof UsageError ? 2 : 1
  }
}

/** Read from the arguments themselves, because they may be what is wrong. */
function wantsJson(args: string[], environment: Environment): boolean {
  const flag = args.findLast((arg) => /^--json(=|$)/.test(arg))
  const text = flag === undefined ? environment[environmentTwin('json')] : (flag.split('=')[1] ?? 'true')
  return text === 'true'
}

/** Every command of the command line, from the nouns in nouns.ts. */
const nouns: Noun[] = Object.values(table)

export const commands: readonly KnownCommand[] = groups.flatMap((group) =>
  nouns
    .filter((noun) => noun.group === group)
    .flatMap((noun) => noun.commands.map((each) => withCommonOptions(each, group))),
)

function withCommonOptions(command: Command, group: Noun['group']): KnownCommand {
  const { json, ...others } = commonOptions
  const common = command.json === false ? others : { json, ...others }
  return { ...command, group, options: { ...command.options, ...common } }
}
