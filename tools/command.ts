/** The form of a command of `sluice`: name, summary, options, an example, run. */
import type { Io } from './io.js'

/** 0 success, 1 findings or a failed check, 2 wrong usage or input that cannot be read. */
export type ExitCode = 0 | 1 | 2

/** One option of a command; its `help` is a line of `--help`. */
export type Option =
  | { readonly type: 'boolean'; readonly short?: string; readonly help: string }
  | {
      readonly type: 'string'
      readonly short?: string
      /** The placeholder for the value in `--help`, such as FILE. */
      readonly value: string
      readonly default?: string
      /** May be given several times. */
      readonly multiple?: boolean
      readonly help: string
    }

export type Options = Readonly<Record<string, Option>>

type ValueOf<O extends Option> = O extends { type: 'boolean' }
  ? boolean
  : O extends { multiple: true }
    ? readonly string[]
    : O extends { default: string }
      ? string
      : string | undefined

/** The arguments after the command's name. */
export interface Arguments<O extends Options = Options> {
  readonly values: { readonly [Name in keyof O]: ValueOf<O[Name]> }
  readonly positionals: readonly string[]
}

export interface Command<O extends Options = Options> {
  readonly name: string
  /** One line for the list of commands. */
  readonly summary: string
  /** Arguments besides options: how they are written in `--help` ('' for none), and how many are allowed. */
  readonly operands: { readonly usage: string; readonly least: number; readonly most: number }
  readonly options: O
  /** Paragraphs of `--help` after the options. */
  readonly details?: string
  /** Lines to copy. */
  readonly example: string
  /** Resolves to undefined if it goes on until the process is stopped. */
  run(args: Arguments<O>, io: Io): Promise<ExitCode | undefined>
}

/** For commands that take options only. */
export const NO_OPERANDS = { usage: '', least: 0, most: 0 }

/** Returns its argument; exists so that TypeScript infers the values from the options. */
export function defineCommand<const O extends Options>(command: Command<O>): Command<O> {
  return command
}

/** The arguments make no sense, or name an input that cannot be read: exit code 2. */
export class Unusable extends Error {}

/** The option that names the configuration. */
export const CONFIG = {
  type: 'string',
  value: 'PATH',
  default: 'config',
  help: 'gateway.yaml or its folder',
} as const
