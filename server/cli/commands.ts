/** Every command of the command line, from the nouns in nouns.ts. */
import { groups, type Command, type KnownCommand, type Noun } from './command.ts'
import * as table from './nouns.ts'
import { commonOptions } from './options.ts'

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
