/** `sightglass completions`: what a shell needs to complete verbs and flags, made from the tables of both. */
import { optionFits, optionNames, optionOf, type OptionName } from '../options.ts'
import { UsageError } from '../../errors.ts'
import { verbNames, type VerbName } from '../verb-names.ts'
import { print } from '../print.ts'
import { verbTexts } from './verb-texts.ts'
import type { Invocation } from '../config.ts'

const shells: { readonly [shell: string]: () => string } = { bash, zsh, fish }

export function completions({ words: [shell] }: Invocation): Promise<number> {
  const write = shell === undefined ? undefined : shells[shell]
  if (write === undefined) {
    throw new UsageError('say for which shell: bash, zsh or fish', 'sightglass help completions')
  }
  print(write())
  return Promise.resolve(0)
}

function flagsOf(verb: VerbName): OptionName[] {
  return optionNames.filter((name) => optionFits(name, verb) && !optionOf(name).environmentOnly)
}

/** First words, and for each the second words that may follow. */
function nouns(): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const verb of verbNames) {
    const [first = '', second] = verb.split(' ')
    found.set(first, [...(found.get(first) ?? []), ...(second === undefined ? [] : [second])])
  }
  return found
}

function bash(): string {
  const cases = verbNames.map(
    (verb) =>
      `    '${verb}') flags='${flagsOf(verb)
        .map((name) => `--${name}`)
        .join(' ')}' ;;`,
  )
  const seconds = [...nouns()]
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
${cases.map((line) => line.replace(/^ {4}'([^' ]+)'\)/, "    '$1 '*)").replace(/^ {4}'([^']+)'\)/, "    '$1')")).join('\n')}
    *) flags='${flagsOf('serve')
      .map((name) => `--${name}`)
      .join(' ')}' ;;
  esac
  case "$first" in
    '') words='${[...nouns().keys()].join(' ')}' ;;
${seconds.join('\n')}
  esac
  [ -n "$second" ] && words=''
  case $current in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$current"))
       [ \${#COMPREPLY[@]} -eq 0 ] && COMPREPLY=($(compgen -f -- "$current")) ;;
  esac
}
${valueFunction()}
complete -o filenames -F _sightglass sightglass`
}

/** Completes the value of an option that takes known words. Bash cuts words at = and at :, so they are joined again. */
function valueFunction(): string {
  const cases = optionNames.flatMap((name) => {
    const { choices } = optionOf(name)
    return choices === undefined ? [] : [`    --${name}) choices='${choices.join(' ')}' ;;`]
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
function zsh(): string {
  return `#compdef sightglass
autoload -U +X bashcompinit && bashcompinit
${bash()}`
}

function fish(): string {
  const quote = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const first = [...nouns().keys()]
  const lines = [
    '# Sightglass: sightglass completions fish | source',
    'complete -c sightglass -f',
    ...first.map((word) => {
      const about = verbNames.find((verb) => verb === word)
      const text = about === undefined ? `${word} …` : verbTexts[about].summary
      return `complete -c sightglass -n __fish_use_subcommand -a ${word} -d ${quote(text)}`
    }),
  ]
  for (const verb of verbNames) {
    const [noun = '', second] = verb.split(' ')
    const seen = `__fish_seen_subcommand_from ${noun}`
    if (second !== undefined) {
      lines.push(`complete -c sightglass -n '${seen}' -a ${second} -d ${quote(verbTexts[verb].summary)}`)
    }
    const both = second === undefined ? seen : `${seen}; and __fish_seen_subcommand_from ${second}`
    for (const name of flagsOf(verb)) {
      const { value, choices } = optionOf(name)
      const takes = value === null ? '' : choices === undefined ? ' -r' : ` -x -a ${quote(choices.join(' '))}`
      lines.push(`complete -c sightglass -n '${both}' -l ${name}${takes} -d ${quote(optionOf(name).help)}`)
    }
  }
  return lines.join('\n')
}
