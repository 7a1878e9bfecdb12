#!/usr/bin/env node
/** The entry that package.json names as the command; the commands themselves are in tools/. */
import { holdHangups } from './run/hangup.js'

if (process.argv[2] === 'serve') holdHangups()
// Loaded only now, because it takes a while.
await import('../tools/cli.js')
