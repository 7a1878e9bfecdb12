#!/usr/bin/env node
/** The entry that package.json names as the command; the commands themselves are in tools/. */
import '../tools/cli.js'
