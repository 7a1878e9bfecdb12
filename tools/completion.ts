/** `sluice completion`: a script that lets a shell complete commands and options, made from the commands' declarations. */
import { listed } from '../config/problem.js'
import { didYouMean } from './arguments.js'
import { type Command, defineCommand, Unusable } from './command.js'
import { COMMANDS } from './commands.js'
import { printable } from './text.js'

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript }

export const completion = defineCommand({
  name: 'completion',
  summary: 'Print a script that completes commands in your shell',
  operands: { usage: 'bash|zsh|fish', least: 1, most: 1 },
  options: {},
  details:
    'The script belongs to this version: print it again after an update, or let the shell run it when it starts.',
  example: `source <(sluice completion bash)          # in ~/.bashrc
source <(sluice completion zsh)           # in ~/.zshrc, after compinit
sluice completion fish > ~/.config/fish/completions/sluice.fish`,
  async run({ positionals: [shell = ''] }, io) {
    const found = Object.entries(SCRIPTS).find(([name]) => name === shell)
    if (found === undefined) {
      const names = Object.keys(SCRIPTS)
      throw new Unusable(
        `There is no completion for "${printable(shell)}", only for ${listed(names, 'and')}.${didYouMean(shell, names)}`,
      )
    }
    io.out(found[1](await declaredCommands()))
    return 0
  },
})

interface DeclaredOption {
  /** With its dashes. */
  readonly names: readonly string[]
  readonly help: string
  /** The placeholder for its value; undefined if it takes none. */
  readonly value: string | undefined
  /** The values it accepts, if its placeholder lists them. */
  readonly choices: readonly string[]
  readonly multiple: boolean
}

interface DeclaredCommand {
  readonly name: string
  readonly summary: string
  /** Words it accepts besides options, such as `rotate`. */
  readonly words: readonly string[]
  readonly takesFiles: boolean
  readonly options: readonly DeclaredOption[]
}

async function declaredCommands(): Promise<DeclaredCommand[]> {
  const commands = await Promise.all(COMMANDS.map(entry => entry.load()))
  const names = commands.map(({ name }) => name)
  const help = { name: 'help', summary: 'Explain a command', words: names, takesFiles: false, options: [] }
  return [...commands.map(declared), help]
}

/** The general options, which may be given instead of a command. */
const GENERAL_OPTIONS = ['--help', '--version']

/** True when file names should be offered. */
const isPath = (placeholder: string): boolean => /\b(PATH|FILE|DIR|OLD|NEW)\b/.test(placeholder)

function declared({ name, summary, operands, options }: Command): DeclaredCommand {
  const own = Object.entries(options).map(([option, about]): DeclaredOption => {
    return {
      names: [...(about.short === undefined ? [] : [`-${about.short}`]), `--${option}`],
      help: about.help,
      value: about.type === 'string' ? about.value : undefined,
      choices: about.type === 'string' ? wordsOf(about.value) : [],
      multiple: about.type === 'string' && about.multiple === true,
    }
  })
  const help = { names: ['-h', '--help'], help: 'this text', value: undefined, choices: [], multiple: false }
  return {
    name,
    summary,
    words: wordsOf(operands.usage),
    takesFiles: isPath(operands.usage),
    options: [...own, help],
  }
}

/** The literal words in a usage; placeholders are written in capitals. */
function wordsOf(usage: string): string[] {
  return usage.match(/(?<![\w.'-])[a-z][a-z-]*(?![\w.'-])/g) ?? []
}

/** A script for bash 4 or newer: `source <(sluice completion bash)`. */
function bashScript(commands: readonly DeclaredCommand[]): string {
  return `# Completion of sluice for bash. In ~/.bashrc: source <(sluice completion bash)
_sluice() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} words
  [[ $prev == '=' ]] && prev=\${COMP_WORDS[COMP_CWORD-2]}
  [[ $cur == '=' ]] && prev=\${COMP_WORDS[COMP_CWORD-1]} cur=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words='${[...commands.map(({ name }) => name), ...GENERAL_OPTIONS].join(' ')}'
  else
    case \${COMP_WORDS[1]} in
${commands.map(bashBranch).join('')}    *) return ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
# Where nothing is offered, bash offers files.
complete -o bashdefault -o default -F _sluice sluice
`
}

function bashBranch({ name, words, options }: DeclaredCommand): string {
  const all = [...words, ...options.flatMap(({ names }) => names)]
  const names = new Map<string, string[]>()
  for (const option of options) {
    if (option.value === undefined) continue
    const offer = bashOffer(option, option.value)
    names.set(offer, [...(names.get(offer) ?? []), ...option.names])
  }
  const values = [...names].map(([offer, those]) => `        ${those.join('|')}) ${offer} ;;\n`)
  return `    ${name})
      case $prev in
${values.join('')}        *) words='${all.join(' ')}' ;;
      esac
      ;;
`
}

/** The bash code that completes the value of an option: words, files or nothing. */
function bashOffer({ choices }: DeclaredOption, value: string): string {
  if (choices.length > 0) return `words='${choices.join(' ')}'`
  return isPath(value) ? 'return' : 'compopt +o bashdefault +o default 2>/dev/null; return'
}

/** A script for fish: `sluice completion fish | source`. */
function fishScript(commands: readonly DeclaredCommand[]): string {
  return `# Completion of sluice for fish: sluice completion fish > ~/.config/fish/completions/sluice.fish
complete -c sluice -f
complete -c sluice -n __fish_use_subcommand -l help -d 'this text'
complete -c sluice -n __fish_use_subcommand -l version -d 'print the version'
${commands.flatMap(fishLines).join('\n')}
`
}

function fishLines({ name, summary, words, takesFiles, options }: DeclaredCommand): string[] {
  const here = `complete -c sluice -n '__fish_seen_subcommand_from ${name}'`
  return [
    `complete -c sluice -n __fish_use_subcommand -a ${name} -d ${fishQuoted(summary)}`,
    ...(words.length > 0 ? [`${here} -a ${fishQuoted(words.join(' '))}`] : []),
    ...(takesFiles ? [`${here} -F`] : []),
    ...options.map(option => `${here} ${fishArgument(option)}`),
  ]
}

function fishArgument({ names, help, value, choices }: DeclaredOption): string {
  const spelt = names.map(name => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`))
  const taken =
    value === undefined
      ? ''
      : isPath(value)
        ? ' -r -F'
        : ` -x${choices.length > 0 ? ` -a '${choices.join(' ')}'` : ''}`
  return `${spelt.join(' ')}${taken} -d ${fishQuoted(help.replaceAll('\n', ' '))}`
}

const fishQuoted = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`

/** A script for zsh: sourced, or as the file `_sluice` in a folder of `fpath`. */
function zshScript(commands: readonly DeclaredCommand[]): string {
  return `#compdef sluice
# Completion of sluice for zsh. In ~/.zshrc, after compinit: source <(sluice completion zsh)
_sluice() {
  local -a commands
  commands=(
${commands.map(({ name, summary }) => `    ${zshQuoted(`${name}:${summary}`)}\n`).join('')}  )
  if ((CURRENT == 2)); then
    _describe command commands
    _arguments '--version[print the version]' '--help[this text]'
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
${commands.map(zshBranch).join('')}  esac
}
if [[ $funcstack[1] == _sluice ]]; then _sluice "$@"; else compdef _sluice sluice; fi
`
}

function zshBranch({ name, words, takesFiles, options }: DeclaredCommand): string {
  const operands = [
    ...(words.length > 0 ? [zshQuoted(`1:word:(${words.join(' ')})`)] : []),
    ...(takesFiles ? [zshQuoted('*:file:_files')] : []),
  ]
  return `    ${name}) _arguments ${[...options.map(zshArgument), ...operands].join(' ')} ;;\n`
}

function zshArgument({ names, help, value, choices, multiple }: DeclaredOption): string {
  const text = help.replace(/[[\]\\]/g, '\\$&').replaceAll('\n', ' ')
  const taken = value === undefined ? '' : `:${value.replaceAll(':', '\\:')}:${zshOffer(value, choices)}`
  const several = multiple ? '*' : names.length > 1 ? `(${names.join(' ')})` : ''
  return names.map(name => zshQuoted(`${several}${name}[${text}]${taken}`)).join(' ')
}

function zshOffer(value: string, choices: readonly string[]): string {
  if (choices.length > 0) return `(${choices.join(' ')})`
  return isPath(value) ? '_files' : ''
}

const zshQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
