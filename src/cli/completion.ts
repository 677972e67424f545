/** `postrider completion`: scripts that complete commands and options in a shell, generated from the commands' definitions. */
import { type Command, UsageError } from './command-definition.ts'

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

/** For one state of the command line: the words typed so far without options, and the words that may follow. */
interface Level {
  typed: string
  next: readonly { word: string; summary: string }[]
}

/** Each beginning of a command's name, with the next words: `` → domain, key, …; `domain` → add, list, …. */
function levelsOf(commands: readonly Command[]): Level[] {
  const levels = new Map<string, Map<string, string>>()
  for (const { name, summary } of commands) {
    const words = name.split(' ')
    words.forEach((word, at) => {
      const typed = words.slice(0, at).join(' ')
      const next = levels.get(typed) ?? new Map<string, string>()
      levels.set(typed, next)
      const isWhole = at === words.length - 1
      if (isWhole || !next.has(word)) next.set(word, isWhole ? summary : `commands of ${words.slice(0, at + 1).join(' ')}`)
    })
  }
  return [...levels].map(([typed, next]) => ({ typed, next: [...next].map(([word, summary]) => ({ word, summary })) }))
}

const optionsOf = ({ options }: Command) => [...Object.keys(options), 'help']

/** In single quotes; the same in all three shells, except that fish needs a backslash before a quote. */
const quoted = (text: string, shell: Shell) => `'${shell === 'fish' ? text.replace(/['\\]/g, '\\$&') : text.replaceAll("'", `'\\''`)}'`

/** The body of a `case` statement: the words that follow, and the options of whole commands. */
function casesOf(commands: readonly Command[], line: (level: Level) => string, indent: string): string {
  return levelsOf(commands)
    .map((level) => `${indent}${quoted(level.typed, 'bash')}) ${line(level)} ;;`)
    .join('\n')
}

function optionCases(commands: readonly Command[], indent: string, prefix: string): string {
  return commands
    .map((one) => {
      const words = optionsOf(one).map((name) => `--${name}`)
      return `${indent}${quoted(one.name, 'bash')}*) ${prefix}${quoted(words.join(' '), 'bash')} ;;`
    })
    .join('\n')
}

/** `case` patterns of options with known values: `'key create'*:--type`. */
function valueCases(commands: readonly Command[], indent: string, prefix: string): string {
  return commands
    .flatMap(({ name, values = {} }) =>
      Object.entries(values).map(
        ([option, some]) => `${indent}${quoted(name, 'bash')}*:--${option}) ${prefix}${quoted(some.join(' '), 'bash')} ;;`,
      ),
    )
    .join('\n')
}

/** Longer names first: `queue pause` is not `queue` with an argument. */
const byLength = (commands: readonly Command[]) => commands.toSorted((one, other) => other.name.length - one.name.length)

function bashScript(commands: readonly Command[]): string {
  const whole = byLength(commands)
  return `# bash completion of postrider. To use it: source <(postrider completion bash)
_postrider() {
  local cur=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} typed='' words='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in -*) break ;; esac
    typed="$typed\${typed:+ }$word"
  done
  case "$typed:$previous" in
${valueCases(whole, '    ', 'words=')}
  esac
  if [ -z "$words" ]; then
    case $cur in
      -*) case $typed in
${optionCases(whole, '        ', 'words=')}
      esac ;;
      *) case $typed in
${casesOf(commands, ({ next }) => `words=${quoted(next.map(({ word }) => word).join(' '), 'bash')}`, '        ')}
      esac ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _postrider postrider
`
}

function zshScript(commands: readonly Command[]): string {
  const whole = byLength(commands)
  const described = ({ next }: Level) =>
    `words_=(${next.map(({ word, summary }) => quoted(`${word}:${summary.replaceAll(':', '\\:')}`, 'zsh')).join(' ')})`
  return `#compdef postrider
# zsh completion of postrider. To use it: source <(postrider completion zsh)
_postrider() {
  local typed='' word options=''
  local -a words_
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case $word in -*) break ;; esac
    typed="$typed\${typed:+ }$word"
  done
  case "$typed:\${words[CURRENT-1]}" in
${valueCases(whole, '    ', 'options=')}
  esac
  if [[ -n $options ]]; then
    compadd -- \${=options}
    return
  fi
  if [[ \${words[CURRENT]} == -* ]]; then
    case $typed in
${optionCases(whole, '      ', 'options=')}
    esac
    compadd -- \${=options}
    return
  fi
  case $typed in
${casesOf(commands, described, '    ')}
  esac
  if (( \${#words_} )); then _describe command words_; else _files; fi
}
compdef _postrider postrider
`
}

function fishScript(commands: readonly Command[]): string {
  const rule = (condition: string, more: string) => `complete -c postrider -n ${quoted(condition, 'fish')} ${more}`
  const words = levelsOf(commands).flatMap(({ typed, next }) =>
    next.map(({ word, summary }) => rule(`__postrider_typed "${typed}"`, `-f -a ${quoted(word, 'fish')} -d ${quoted(summary, 'fish')}`)),
  )
  const options = commands.flatMap((one) =>
    optionsOf(one).map((name) => {
      const values = one.values?.[name]
      const takes = values ? ` -x -a ${quoted(values.join(' '), 'fish')}` : one.options[name]?.type === 'string' ? ' -r' : ''
      return rule(`__postrider_begins "${one.name}"`, `-l ${name}${takes}`)
    }),
  )
  return `# fish completion of postrider. To use it: postrider completion fish | source
function __postrider_words
  for word in (commandline -opc)[2..]
    string match -q -- '-*' $word; and break
    echo $word
  end
end
function __postrider_typed
  set -l words (__postrider_words)
  test "$words" = "$argv[1]"
end
function __postrider_begins
  set -l words (__postrider_words)
  string match -q -- "$argv[1] *" "$words "
end
${[...words, ...options].join('\n')}
`
}

const scripts: Record<Shell, (commands: readonly Command[]) => string> = { bash: bashScript, zsh: zshScript, fish: fishScript }

/** The command that completes `commands()` and itself. */
export const completionOf = (commands: () => readonly Command[]): Command => ({
  name: 'completion',
  summary: 'print a completion script for bash, zsh or fish',
  help: `postrider completion bash|zsh|fish

Prints a script that completes commands, options and their values. It completes the word postrider, as installed by docs/install.md.

Example: postrider completion bash > /etc/bash_completion.d/postrider`,
  options: {},
  positionals: ['SHELL'],
  async run(given, deps) {
    const shell = shells.find((one) => one === given.positionals[0])
    if (!shell) throw new UsageError(`the shell must be one of ${shells.join(', ')}`)
    deps.print(scripts[shell](commands()).trimEnd())
  },
})
