/** The `sluice` command. Its subcommands are listed in tools/commands.ts. */

import { Failure } from '../gateway/run/load.js'
import { processIo } from './io.js'
import { run } from './run.js'

try {
  process.exitCode = await run(process.argv.slice(2), processIo())
} catch (error) {
  process.stderr.write(`${sentenceOf(error as NodeJS.ErrnoException)}\n`)
  process.exit(1)
}

function sentenceOf(error: NodeJS.ErrnoException): string {
  if (error instanceof Failure) return error.message
  return error.stack ?? String(error)
}
