/** The commands, one line each. Each is loaded when it is asked for, so none pays for another. */
import type { Command, Options } from './command.js'

interface Entry {
  readonly name: string
  load(): Promise<Command>
}

export const COMMANDS: readonly Entry[] = [
  entry('serve', async () => (await import('./serve.js')).serve),
  entry('check', async () => (await import('./check.js')).check),
  entry('explain', async () => (await import('./explain/command.js')).explain),
  entry('top', async () => (await import('./top/command.js')).top),
  entry('diff', async () => (await import('./diff/command.js')).diff),
  entry('import', async () => (await import('./import/command.js')).importCommand),
  entry('schema', async () => (await import('./schema.js')).schema),
  entry('report', async () => (await import('./report/command.js')).report),
  entry('replay', async () => (await import('./replay/command.js')).replay),
  entry('keys', async () => (await import('./keys.js')).keys),
  entry('health', async () => (await import('./health.js')).health),
]

/** A command reads only the values of its own options. */
function entry<O extends Options>(name: string, load: () => Promise<Command<O>>): Entry {
  return { name, load: load as () => Promise<Command> }
}
