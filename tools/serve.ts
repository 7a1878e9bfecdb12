/** `sluice serve`: runs the gateway until it is stopped. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '../gateway/errors.js'
import { CONFIG, defineCommand, NO_OPERANDS, Unusable } from './command.js'
import type { Io } from './io.js'
import { GENERATED, readStarter, STARTER, type Starter, starterContents } from './starter/files.js'
import { addressOf, answers, leadsTo, limitsText } from './starter/options.js'

export const serve = defineCommand({
  name: 'serve',
  summary: 'Run the gateway',
  operands: NO_OPERANDS,
  options: {
    // No default, because it must not be combined with --upstream.
    config: { type: 'string', value: CONFIG.value, help: `${CONFIG.help} (${CONFIG.default})` },
    upstream: { ...STARTER.upstream, help: `without a configuration: ${STARTER.upstream.help}` },
    limit: { ...STARTER.limit, help: `with --upstream: ${STARTER.limit.help}` },
    watch: { type: 'boolean', help: 'for authors of plugins: restart when the code of a plugin changes' },
  },
  details: `SIGTERM and SIGINT let running requests finish, SIGHUP reloads the configuration. The log goes to stdout: JSON lines, or readable text on a terminal.

With --upstream no files are read: it runs what "sluice init" would write. PORT, ADMIN_PORT, REDIS_URL and the other variables of that configuration apply.`,
  example:
    'sluice serve --config ./config\nsluice serve --upstream http://127.0.0.1:3000 --limit 10/s --limit 1000/h',
  async run({ values: { config, upstream, limit, watch } }, io) {
    if (upstream !== undefined) {
      const beside = config !== undefined ? '--config' : watch ? '--watch' : undefined
      if (beside !== undefined) throw new Unusable(`--upstream runs without files: leave ${beside} out.`)
      await serveStarter(readStarter({ upstream, limit }), io)
      return undefined
    }
    if (limit.length > 0) {
      throw new Unusable('--limit needs --upstream. The limits of a configuration are in its policies.')
    }
    const path = config ?? CONFIG.default
    if (!existsSync(path)) throw new Failure(missing(path))
    if (watch) return (await import('./serve-watched.js')).serveWatched(path, io)
    const gateway = await import('../gateway/run/serve.js')
    await gateway.serve(path)
    return undefined
  },
})

function missing(path: string): string {
  return `There is no configuration at ${path}. Name one with --config, or begin with one of these:
  sluice serve --upstream http://127.0.0.1:3000    limits your own service, without files
  sluice init                                      writes a configuration to begin with`
}

async function serveStarter(starter: Starter, io: Io): Promise<void> {
  const { upstream, limits } = starter
  const gateway = await import('../gateway/run/serve.js')
  const isThere = await answers(upstream)
  const { url } = await gateway.serve(join(GENERATED, 'gateway.yaml'), {
    contents: starterContents(starter),
    summary: `${limitsText(limits)}, to ${upstream}`,
  })
  // If something was listening before, it is another service, even on the same port.
  if (!isThere && leadsTo(upstream, addressOf(url))) {
    throw new Failure(
      `--upstream ${upstream} is this gateway itself: each request would come back to it. Set PORT to another port, as in PORT=8090, or name your service's own.`,
    )
  }
  io.err(`Try it:  curl -i ${url}/\nKeep it: sluice init ${optionsOf(starter)}\n`)
  if (!isThere) {
    io.err(`Note: nothing answers at ${upstream} yet. Requests get 502 until something does.\n`)
  }
}

/** The options that produce the same configuration again. */
function optionsOf({ upstream, limits }: Starter): string {
  const each = limits.map(({ requests, per }) => `--limit ${requests}/${per.replace(/^1(?=[a-z])/, '')}`)
  return [`--upstream ${upstream}`, ...each].join(' ')
}
