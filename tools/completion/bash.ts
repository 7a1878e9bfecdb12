import { type DeclaredCommand, type DeclaredOption, GENERAL_OPTIONS, isPath } from './declared.js'

/** A script for bash 4 or newer: `source <(sluice completion bash)`. */
export function bashScript(commands: readonly DeclaredCommand[]): string {
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
${commands.map(branch).join('')}    *) return ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
# Where nothing is offered, bash offers files.
complete -o bashdefault -o default -F _sluice sluice
`
}

function branch({ name, words, options }: DeclaredCommand): string {
  const all = [...words, ...options.flatMap(({ names }) => names)]
  const names = new Map<string, string[]>()
  for (const option of options) {
    if (option.value === undefined) continue
    const offer = offerOf(option, option.value)
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
function offerOf({ choices }: DeclaredOption, value: string): string {
  if (choices.length > 0) return `words='${choices.join(' ')}'`
  return isPath(value) ? 'return' : 'compopt +o bashdefault +o default 2>/dev/null; return'
}
