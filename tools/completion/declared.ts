/**
 * All arguments of `sluice`, from the commands' own declarations; the scripts for shells are generated from this alone.
 */
import type { Command } from '../command.js'
import { COMMANDS } from '../commands.js'

export interface DeclaredOption {
  /** With its dashes. */
  readonly names: readonly string[]
  readonly help: string
  /** The placeholder for its value; undefined if it takes none. */
  readonly value: string | undefined
  /** The values it accepts, if its placeholder lists them. */
  readonly choices: readonly string[]
  readonly multiple: boolean
}

export interface DeclaredCommand {
  readonly name: string
  readonly summary: string
  /** Words it accepts besides options, such as `rotate`. */
  readonly words: readonly string[]
  readonly takesFiles: boolean
  readonly options: readonly DeclaredOption[]
}

export async function declaredCommands(): Promise<DeclaredCommand[]> {
  const commands = await Promise.all(COMMANDS.map(entry => entry.load()))
  const names = commands.map(({ name }) => name)
  const help = {
    name: 'help',
    summary: 'Explain a command',
    words: names,
    takesFiles: false,
    options: [],
  }
  return [...commands.map(declared), help]
}

/** The general options, which may be given instead of a command. */
export const GENERAL_OPTIONS = ['--help', '--version']

/** True when file names should be offered. */
export const isPath = (placeholder: string): boolean => /\b(PATH|FILE|DIR|OLD|NEW)\b/.test(placeholder)

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
