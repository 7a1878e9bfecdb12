/** The commands, one line each. Each is loaded on demand, so that no command pays for another. */
import type { Command, Options } from './command.js'

interface Entry {
  readonly name: string
  load(): Promise<Command>
}

export const COMMANDS: readonly Entry[] = [
  entry('serve', async () => (await import('./serve.js')).serve),
  entry('directory', async () => (await import('./service.js')).directory),
  entry('identity', async () => (await import('./service.js')).identity),
  entry('init', async () => (await import('./starter/init.js')).init),
  entry('check', async () => (await import('./check.js')).check),
  entry('explain', async () => (await import('./explain/command.js')).explain),
  entry('top', async () => (await import('./top/command.js')).top),
  entry('diff', async () => (await import('./diff.js')).diff),
  entry('import', async () => (await import('./import/command.js')).importCommand),
  entry('schema', async () => (await import('./schema.js')).schema),
  entry('report', async () => (await import('./report/command.js')).report),
  entry('replay', async () => (await import('./replay/command.js')).replay),
  entry('counters', async () => (await import('./live/counters.js')).counters),
  entry('reset', async () => (await import('./live/counters.js')).reset),
  entry('mode', async () => (await import('./live/overrides.js')).mode),
  entry('access', async () => (await import('./live/access.js')).access),
  entry('override', async () => (await import('./live/override.js')).override),
  entry('overrides', async () => (await import('./live/overrides.js')).overrides),
  entry('credit', async () => (await import('./live/credit.js')).credit),
  entry('keys', async () => (await import('./keys/command.js')).keys),
  entry('usage', async () => (await import('./usage.js')).usage),
  entry('encryption', async () => (await import('./encryption.js')).encryption),
  entry('health', async () => (await import('./health.js')).health),
  entry('plugin', async () => (await import('./plugin.js')).plugin),
  entry('completion', async () => (await import('./completion.js')).completion),
]

/** A command reads only the values of its own options. */
function entry<O extends Options>(name: string, load: () => Promise<Command<O>>): Entry {
  return { name, load: load as () => Promise<Command> }
}
