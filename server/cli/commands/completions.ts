/** `sightglass completions`: a script with which a shell completes commands, flags and their values. */
import { UsageError } from '../../errors.ts'
import { flagsOf, optionTable } from '../arguments.ts'
import { command, type KnownCommand, type Noun } from '../command.ts'
import { print } from '../print.ts'

type Commands = readonly KnownCommand[]

const shells: { readonly [shell: string]: (commands: Commands) => string } = { bash, zsh, fish }

export const completions: Noun = {
  group: 'Program',
  commands: [
    command({
      name: 'completions',
      summary: 'print the completion script of a shell',
      arguments: 'bash|zsh|fish',
      about: ['For bash, run: source <(sightglass completions bash)'],
      examples: [
        'sightglass completions bash > /etc/bash_completion.d/sightglass',
        'sightglass completions fish | source',
      ],
      options: {},
      run({ words: [shell = ''], commands }) {
        const write = Object.hasOwn(shells, shell) ? shells[shell] : undefined
        if (write === undefined)
          throw new UsageError('name a shell: bash, zsh or fish', 'sightglass help completions')
        print(write(commands))
        return 0
      },
    }),
  ],
}

/** First words, each with the second words that may follow. */
function nouns(commands: Commands): Map<string, string[]> {
  const wordsByNoun = new Map<string, string[]>()
  for (const { name } of commands) {
    const [first = '', second] = name.split(' ')
    wordsByNoun.set(first, [...(wordsByNoun.get(first) ?? []), ...(second === undefined ? [] : [second])])
  }
  return wordsByNoun
}

function bash(commands: Commands): string {
  const cases = commands.map((knownCommand) => {
    const pattern = knownCommand.name.includes(' ') ? `'${knownCommand.name}'` : `'${knownCommand.name} '*`
    return `    ${pattern}) flags='${flagList(knownCommand)}' ;;`
  })
  const serve = commands.find(({ name }) => name === 'serve')!
  const seconds = [...nouns(commands)]
    .filter(([, words]) => words.length > 0)
    .map(([first, words]) => `    ${first}) words='${words.join(' ')}' ;;`)
  return `# Sightglass: source <(sightglass completions bash)
_sightglass() {
  local current=\${COMP_WORDS[COMP_CWORD]} first='' second='' word flags words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in -*) ;; *) if [ -z "$first" ]; then first=$word; elif [ -z "$second" ]; then second=$word; fi ;; esac
  done
  _sightglass_value && return
  case "$first $second" in
${cases.join('\n')}
    *) flags='${flagList(serve)}' ;;
  esac
  case "$first" in
    '') words='${[...nouns(commands).keys()].join(' ')}' ;;
${seconds.join('\n')}
  esac
  [ -n "$second" ] && words=''
  case $current in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$current"))
       [ \${#COMPREPLY[@]} -eq 0 ] && COMPREPLY=($(compgen -f -- "$current")) ;;
  esac
}
${valueFunction(commands)}
complete -o filenames -F _sightglass sightglass`
}

function flagList(knownCommand: KnownCommand): string {
  return flagsOf(knownCommand)
    .map((name) => `--${name}`)
    .join(' ')
}

/** Completes values that are known words. Bash cuts words at = and :, so they are joined again. */
function valueFunction(commands: Commands): string {
  // `--format` of one command takes other values than that of another one.
  const isShared = (name: string, choices: string): boolean =>
    commands.every(
      ({ options }) => (options[name]?.choices?.join(' ') ?? (name in options ? '' : choices)) === choices,
    )
  const cases = [...optionTable(commands)].flatMap(([name, { choices }]) => {
    return choices === undefined || !isShared(name, choices.join(' '))
      ? []
      : [`    --${name}) choices='${choices.join(' ')}' ;;`]
  })
  return `_sightglass_value() {
  local at=$COMP_CWORD whole=\${COMP_WORDS[COMP_CWORD]} part=\${COMP_WORDS[COMP_CWORD]} option value choices='' one
  while ((at > 1)) && { [[ \${COMP_WORDS[at]} == [:=] ]] || [[ \${COMP_WORDS[at - 1]} == [:=] ]]; }; do
    ((at--)); whole=\${COMP_WORDS[at]}$whole
  done
  case $whole in
    --*=*) option=\${whole%%=*}; value=\${whole#*=} ;;
    *) option=\${COMP_WORDS[at - 1]}; value=$whole ;;
  esac
  case $option in
${cases.join('\n')}
  esac
  [ -z "$choices" ] && return 1
  [[ $part == [:=] ]] && part=''
  local before=\${whole%"$part"} list='' replies=()
  case $value in *,*) list=\${value%,*}, ;; esac
  for one in $(compgen -W "$choices" -- "\${value##*,}"); do
    one=\${whole%"$value"}$list$one
    replies+=("\${one#"$before"}")
  done
  COMPREPLY=("\${replies[@]}")
}`
}

/** zsh reads the same function through its bash compatibility. */
function zsh(commands: Commands): string {
  return `#compdef sightglass
autoload -U +X bashcompinit && bashcompinit
${bash(commands)}`
}

function fish(commands: Commands): string {
  const quote = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = [
    '# Sightglass: sightglass completions fish | source',
    'complete -c sightglass -f',
    ...[...nouns(commands).keys()].map((word) => {
      const summary = commands.find(({ name }) => name === word)?.summary ?? `${word} …`
      return `complete -c sightglass -n __fish_use_subcommand -a ${word} -d ${quote(summary)}`
    }),
  ]
  for (const knownCommand of commands) {
    const [noun = '', second] = knownCommand.name.split(' ')
    const nounSeen = `__fish_seen_subcommand_from ${noun}`
    if (second !== undefined)
      lines.push(`complete -c sightglass -n '${nounSeen}' -a ${second} -d ${quote(knownCommand.summary)}`)
    const condition =
      second === undefined ? nounSeen : `${nounSeen}; and __fish_seen_subcommand_from ${second}`
    for (const name of flagsOf(knownCommand)) {
      const { value, choices, help } = knownCommand.options[name]!
      const takes = value === null ? '' : choices === undefined ? ' -r' : ` -x -a ${quote(choices.join(' '))}`
      lines.push(`complete -c sightglass -n '${condition}' -l ${name}${takes} -d ${quote(help)}`)
    }
  }
  return lines.join('\n')
}
