#!/usr/bin/env node
/** The `sluice` command. What it can do stands in tools/commands.ts. */
import { processIo } from '../tools/io.js'
import { run } from '../tools/run.js'
import { Failure } from './load.js'

try {
  process.exitCode = await run(process.argv.slice(2), processIo())
} catch (error) {
  process.stderr.write(`${sentenceOf(error as NodeJS.ErrnoException)}\n`)
  process.exit(1)
}

function sentenceOf(error: NodeJS.ErrnoException): string {
  if (error instanceof Failure) return error.message
  if (error.code === 'EADDRINUSE') return `${error.message}. Choose another with PORT or ADMIN_PORT.`
  return error.stack ?? String(error)
}
