/** Configurations of other gateways in a few lines, imported and asked with `explain`, beside a real nginx where there is one. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { sluice } from './command.js'
import { send } from './http.js'
import { nginxServing } from './nginx.js'

export const PASS = 'proxy_pass http://127.0.0.1:3000;'
export const HOST = 'a.example.com'

/** @param more further files, such as Traefik's static configuration */
export async function imported(t: Test, format: string, text: string, ...more: readonly string[]) {
  const texts = Object.fromEntries([text, ...more].map((one, i) => [`gateway${i}.conf`, one]))
  const folder = t.testdir(texts)
  const made = join(folder, 'made')
  const files = Object.keys(texts).map(name => join(folder, name))
  const { err } = await sluice(['import', format, ...files, '--output', made])
  const checked = await sluice(['check', '--config', made])
  t.equal(checked.code, 0, checked.out + checked.err)
  const passes = async (host: string, path: string, method = 'GET'): Promise<boolean> => {
    const { out } = await sluice(['explain', method, path, '--host', host, '--config', made, '--json'])
    const { upstream, answer } = JSON.parse(out)
    return upstream !== null && (answer.status === null || answer.status < 400)
  }
  const policy = (kind: string): string => readFileSync(join(made, 'policies', `${kind}.yaml`), 'utf8')
  return { made, err, passes, gateway: readFileSync(join(made, 'gateway.yaml'), 'utf8'), policy }
}

/** Imports the servers, and asks the import and a real nginx for the same paths. */
export function compared(t: Test, servers: Readonly<Record<string, string>>, paths: readonly string[]) {
  const text = Object.entries(servers)
    .map(([host, block]) => `server { listen 80; server_name ${host}; ${block} }`)
    .join('\n')
  return comparedAs(t, text, Object.keys(servers), paths)
}

/** The same for a whole configuration: what nginx refuses on these hosts, at least one path on each, is closed. */
export async function comparedAs(t: Test, text: string, hosts: readonly string[], paths: readonly string[]) {
  const told = await imported(t, 'nginx', text)
  const nginx = await nginxServing(t, port =>
    text
      .replaceAll('listen 80', `listen 127.0.0.1:${port}`)
      .replaceAll(PASS, 'return 200;')
      .replaceAll('auth_basic_user_file x;', 'auth_basic_user_file users;'),
  )
  if (nginx === undefined) return told
  for (const host of hosts) {
    let refused = 0
    for (const path of paths) {
      const { status } = await send(nginx + path, { headers: { host } })
      if (status < 400) continue
      refused += 1
      t.notOk(await told.passes(host, path), `closed: ${host}${path} ${text}`)
    }
    t.ok(refused > 0, `nginx refuses some: ${host} ${text}`)
  }
  return told
}

/** A dynamic configuration of Traefik: what each router has besides its rule and service, by rule. */
export const traefik = (routers: Readonly<Record<string, string>>): string =>
  [
    'http:',
    '  services: { app: { loadBalancer: { servers: [{ url: "http://127.0.0.1:9000" }] } } }',
    '  middlewares: { auth: { basicAuth: { users: ["a:b"] } }, plain: { headers: {} } }',
    '  routers:',
    ...Object.entries(routers).map(
      ([rule, more], i) => `    r${i}: { rule: ${JSON.stringify(rule)}, service: app, ${more} }`,
    ),
  ].join('\n')
export const GUARDED = 'middlewares: [auth]'

/** Kong with one service and these routes. */
export const kong = (routes: readonly string[], rest = '', version = '3.0'): string =>
  [
    `_format_version: "${version}"`,
    'services:',
    '  - name: app',
    '    url: http://127.0.0.1:9000',
    '    routes:',
    ...routes.map(route => `      - ${route}`),
    rest,
  ].join('\n')
