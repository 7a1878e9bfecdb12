/** `sluice completion`: a script that lets a shell complete commands and options. */
import { listed } from '../../config/problem.js'
import { didYouMean } from '../arguments.js'
import { defineCommand, Unusable } from '../command.js'
import { printable } from '../text.js'
import { declaredCommands } from './declared.js'
import { bashScript, fishScript, zshScript } from './scripts.js'

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
