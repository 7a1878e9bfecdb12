/** The operator's page at `/ui/`: static files without data. The page gets what it shows from the other routes. */
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import type { FastifyPluginAsync } from 'fastify'
import { OPEN } from './key.js'
import { sendProblem } from './problem.js'

/** The page's path. */
export const UI_PATH = '/ui/'

const FOLDER = new URL('../ui/', import.meta.url)
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Nothing from another host, nothing inline, no text made into markup (Trusted Types), and no frame around it. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
}

interface Asset {
  readonly type: string
  readonly body: Buffer
}

/** Routes of the page. Its files are read when it is first requested. */
export function pageRoutes(): FastifyPluginAsync {
  let assets: ReadonlyMap<string, Asset> | undefined
  return async app => {
    app.get('/ui', { ...OPEN, schema: HIDDEN }, async (_request, reply) => reply.redirect(UI_PATH))
    app.get<{ Params: { '*': string } }>(
      `${UI_PATH}*`,
      { ...OPEN, schema: HIDDEN },
      async ({ params }, reply) => {
        assets ??= readAssets()
        const asset = assets.get(params['*'] || 'index.html')
        if (asset === undefined) return sendProblem(reply, 404, `The page is at ${UI_PATH}.`)
        return reply.headers(HEADERS).type(asset.type).send(asset.body)
      },
    )
  }
}

const HIDDEN = { hide: true }

function readAssets(): Map<string, Asset> {
  const assets = new Map<string, Asset>()
  for (const name of readdirSync(FOLDER)) {
    const type = TYPES[extname(name)]
    if (type !== undefined) assets.set(name, { type, body: readFileSync(new URL(name, FOLDER)) })
  }
  return assets
}
