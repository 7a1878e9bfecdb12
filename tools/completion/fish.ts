import { type DeclaredCommand, type DeclaredOption, isPath } from './declared.js'

/** A script for fish: `sluice completion fish | source`. */
export function fishScript(commands: readonly DeclaredCommand[]): string {
  return `# Completion of sluice for fish: sluice completion fish > ~/.config/fish/completions/sluice.fish
complete -c sluice -f
complete -c sluice -n __fish_use_subcommand -l help -d 'this text'
complete -c sluice -n __fish_use_subcommand -l version -d 'print the version'
${commands.flatMap(linesOf).join('\n')}
`
}

function linesOf({ name, summary, words, takesFiles, options }: DeclaredCommand): string[] {
  const here = `complete -c sluice -n '__fish_seen_subcommand_from ${name}'`
  return [
    `complete -c sluice -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
    ...(words.length > 0 ? [`${here} -a ${quoted(words.join(' '))}`] : []),
    ...(takesFiles ? [`${here} -F`] : []),
    ...options.map(option => `${here} ${argument(option)}`),
  ]
}

function argument({ names, help, value, choices }: DeclaredOption): string {
  const spelt = names.map(name => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`))
  const taken =
    value === undefined
      ? ''
      : isPath(value)
        ? ' -r -F'
        : ` -x${choices.length > 0 ? ` -a '${choices.join(' ')}'` : ''}`
  return `${spelt.join(' ')}${taken} -d ${quoted(help.replaceAll('\n', ' '))}`
}

const quoted = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`
