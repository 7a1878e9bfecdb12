/** The `sluice` command. Its subcommands are listed in tools/commands.ts. */

import { Failure } from '../gateway/errors.js'
import { processIo } from './io.js'
import { run } from './run.js'

const code = await run(process.argv.slice(2), processIo()).catch((error: NodeJS.ErrnoException) => {
  process.stderr.write(`${sentenceOf(error)}\n`)
  return 1
})
if (code !== undefined) {
  await Promise.all([process.stdout, process.stderr].map(written))
  // A plugin's module may hold a timer or a connection for as long as the process lives.
  process.exit(code)
}

/** Resolves once everything is written, or the reader has gone. */
function written(stream: NodeJS.WriteStream): Promise<unknown> {
  return new Promise(resolve => stream.write('', resolve))
}

function sentenceOf(error: NodeJS.ErrnoException): string {
  if (error instanceof Failure) return error.message
  return error.stack ?? String(error)
}
