import { type DeclaredCommand, type DeclaredOption, isPath } from './declared.js'

/** A script for zsh: sourced, or as the file `_sluice` in a folder of `fpath`. */
export function zshScript(commands: readonly DeclaredCommand[]): string {
  return `#compdef sluice
# Completion of sluice for zsh. In ~/.zshrc, after compinit: source <(sluice completion zsh)
_sluice() {
  local -a commands
  commands=(
${commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}\n`).join('')}  )
  if ((CURRENT == 2)); then
    _describe command commands
    _arguments '--version[print the version]' '--help[this text]'
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
${commands.map(branch).join('')}  esac
}
if [[ $funcstack[1] == _sluice ]]; then _sluice "$@"; else compdef _sluice sluice; fi
`
}

function branch({ name, words, takesFiles, options }: DeclaredCommand): string {
  const operands = [
    ...(words.length > 0 ? [quoted(`1:word:(${words.join(' ')})`)] : []),
    ...(takesFiles ? [quoted('*:file:_files')] : []),
  ]
  return `    ${name}) _arguments ${[...options.map(argument), ...operands].join(' ')} ;;\n`
}

function argument({ names, help, value, choices, multiple }: DeclaredOption): string {
  const text = help.replace(/[[\]\\]/g, '\\$&').replaceAll('\n', ' ')
  const taken = value === undefined ? '' : `:${value.replaceAll(':', '\\:')}:${offered(value, choices)}`
  const several = multiple ? '*' : names.length > 1 ? `(${names.join(' ')})` : ''
  return names.map(name => quoted(`${several}${name}[${text}]${taken}`)).join(' ')
}

function offered(value: string, choices: readonly string[]): string {
  if (choices.length > 0) return `(${choices.join(' ')})`
  return isPath(value) ? '_files' : ''
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
