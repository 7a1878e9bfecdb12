/** A real nginx, with given locations or with a whole configuration. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { findCommand, startServer } from './child-server.js'
import { send } from './http.js'
import { reportMissing } from './missing.js'

/** Host of the server that reports that nginx is up. */
const UP = 'up.invalid'

/**
 * Starts nginx with these locations, such as `= /x`; a response's body is the number of the location, or `none`.
 * Returns its URL, or undefined after reporting the test as skipped (a failure in CI).
 */
export function nginxWith(t: Test, locations: readonly string[]): Promise<string | undefined> {
  const served = locations.map((location, i) => `location ${location} { return 200 ${i}; }`)
  return nginxServing(t, port =>
    [`server { listen 127.0.0.1:${port};`, 'location / { return 404 none; }', ...served, '}'].join('\n'),
  )
}

/**
 * Starts nginx with this content of its `http` block, and a further server that reports that nginx is up.
 * Returns its URL, or undefined after reporting the test as skipped (a failure in CI).
 */
export async function nginxServing(t: Test, http: (port: number) => string): Promise<string | undefined> {
  const command = findCommand(['nginx'], ['/usr/sbin'])
  if (command === undefined) {
    reportMissing(t, 'nginx', 'install it with `npm run services` or your package manager')
    return undefined
  }
  const server = await startServer({
    command,
    args(port, folder) {
      const file = join(folder, 'nginx.conf')
      writeFileSync(file, config(port, http(port)))
      return ['-p', folder, '-e', 'stderr', '-c', file]
    },
    answers: async port => (await send(`http://127.0.0.1:${port}`, { headers: { host: UP } })).status === 200,
  })
  t.teardown(() => server.stop())
  return `http://127.0.0.1:${server.port}`
}

function config(port: number, http: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return [
    'daemon off; master_process off; pid nginx.pid; error_log stderr;',
    'events { worker_connections 64; }',
    'http { access_log off;',
    ...temporary.map(name => `${name}_temp_path ${name};`),
    http,
    `server { listen 127.0.0.1:${port}; server_name ${UP}; location / { return 200; } }`,
    '}',
  ].join('\n')
}
