/** Runs one command line. Exit code 0: done, 1: refused or failed, 2: usage error. */
import {
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  openSync,
  readdirSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
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
  let dataDir: string | null = null
  try {
    const invocation = readInvocation(args, environment, commands)
    dataDir = invocation.values['data-dir']
    if (!invocation.help || invocation.command.name === 'help')
      return await invocation.command.run(invocation)
    const help = commands.find(({ name }) => name === 'help')!
    return await help.run({ ...invocation, command: help, words: invocation.command.name.split(' ') })
  } catch (error) {
    const problem = problemOf(error)
    if (wantsJson(args, environment)) print(JSON.stringify(problem), 2)
    else printError(problem.message, problem.hint ?? null)
    return error instanceof UsageError ? 2 : 1
  } finally {
    if (process.getuid?.() === 0 && dataDir !== null) giveToOwner(dataDir)
  }
}

/**
 * A service with an account of its own cannot read what root created in its data folder: `sudo sightglass restore`
 * leaves it the files. Failures change nothing else: `doctor` reports such files.
 */
function giveToOwner(dataDir: string): void {
  try {
    const owner = statSync(dataDir)
    if (owner.uid !== 0) giveAll(realpathSync(dataDir), owner)
  } catch {
    return
  }
}

/**
 * By descriptors, without links and without files that have a second name: the account may replace a name at any
 * moment, and must not obtain a file from elsewhere.
 */
function giveAll(path: string, owner: { uid: number; gid: number }): void {
  const opened = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const stats = fstatSync(opened)
    const isOne = stats.isDirectory() || (stats.isFile() && stats.nlink === 1)
    if (isOne && stats.uid === 0) fchownSync(opened, owner.uid, owner.gid)
    if (!stats.isDirectory()) return
    const folder = process.platform === 'linux' ? `/proc/self/fd/${opened}` : path
    for (const name of readdirSync(folder)) {
      try {
        giveAll(join(folder, name), owner)
      } catch {
        continue // a link, a socket, or gone
      }
    }
  } finally {
    closeSync(opened)
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
    .flatMap((noun) => noun.commands.map((command) => withCommonOptions(command, group))),
)

function withCommonOptions(command: Command, group: Noun['group']): KnownCommand {
  const { json, ...otherOptions } = commonOptions
  const common = command.json === false ? otherOptions : { json, ...otherOptions }
  return { ...command, group, options: { ...command.options, ...common } }
}
