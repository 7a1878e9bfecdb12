/** Finds and runs the command of a command line, and returns its exit code. */

import { version } from '../gateway/run/version.js'
import { commandHelp, didYouMean, generalHelp, readArguments } from './arguments.js'
import { type Command, type ExitCode, Unusable } from './command.js'
import { COMMANDS } from './commands.js'
import type { Io } from './io.js'
import { printable } from './text.js'

/**
 * Runs `sluice` with its arguments; undefined if the command goes on. Errors of commands are passed on, except for wrong
 * usage.
 */
export async function run(written: readonly string[], io: Io): Promise<ExitCode | undefined> {
  try {
    return await dispatch(written, io)
  } catch (error) {
    if (!(error instanceof Unusable)) throw error
    // The message may quote the arguments.
    for (const line of error.message.split('\n')) io.err(`${printable(line)}\n`)
    return 2
  }
}

async function dispatch([word, ...rest]: readonly string[], io: Io): Promise<ExitCode | undefined> {
  const asksHelp = isHelp(word)
  if (word === '--version') io.out(`${version()}\n`)
  else if (word === undefined || (asksHelp && (rest.length === 0 || isHelp(rest[0])))) {
    io.out(generalHelp(await Promise.all(COMMANDS.map(entry => entry.load())), io.columns))
  } else if (asksHelp) io.out(commandHelp(await find(rest[0] as string), io.columns))
  else return runCommand(await find(word), rest, io)
  return 0
}

const isHelp = (word: string | undefined): boolean => word === 'help' || word === '--help' || word === '-h'

async function find(name: string): Promise<Command> {
  const entry = COMMANDS.find(one => one.name === name)
  if (entry !== undefined) return entry.load()
  const names = COMMANDS.map(one => one.name)
  throw new Unusable(`There is no command "${name}".${didYouMean(name, names)} "sluice --help" lists them.`)
}

async function runCommand(
  command: Command,
  written: readonly string[],
  io: Io,
): Promise<ExitCode | undefined> {
  let args: ReturnType<typeof readArguments>
  try {
    args = readArguments(command, written)
  } catch (error) {
    if (!(error instanceof Unusable)) throw error
    throw new Unusable(`${error.message} See "sluice ${command.name} --help".`)
  }
  if (args !== 'help') return command.run(args, io)
  io.out(commandHelp(command, io.columns))
  return 0
}
