/** Imported configurations of other gateways, each asked from outside with `explain`. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { sluice } from './command.js'
import { inProject } from './root.js'

const OUTSIDE = '203.0.113.9'
/** A file of test/fixtures/import/doors. */
export const fixture = (name: string): string => inProject('test', 'fixtures', 'import', 'doors', name)

export interface Scene {
  readonly format: string
  readonly files: readonly string[]
  /** Requests that must not pass, as `[METHOD ]host/path`; `@address` at the end for another client. */
  readonly shut: readonly string[]
  /** Requests that pass, with the same limits as before. */
  readonly open: readonly string[]
  readonly says?: readonly RegExp[]
  readonly gateway?: readonly RegExp[]
  readonly headers?: readonly string[]
}

/** Imports the files of a scene, checks the result, and asks its requests: one passes when it reaches an upstream. */
export async function play(t: Test, scene: Scene): Promise<void> {
  const folder = join(t.testdir(), 'made')
  const { err } = await sluice(['import', scene.format, ...scene.files.map(fixture), '--output', folder])
  const checked = await sluice(['check', '--config', folder])
  t.equal(checked.code, 0, checked.out + checked.err)
  const passes = askWith(folder, scene.headers ?? [])
  for (const request of scene.shut) t.notOk(await passes(request), `closed: ${request}`)
  for (const request of scene.open) t.ok(await passes(request), `open: ${request}`)
  for (const line of scene.says ?? []) t.match(err, line)
  const gateway = readFileSync(join(folder, 'gateway.yaml'), 'utf8')
  for (const line of scene.gateway ?? []) t.match(gateway, line)
}

function askWith(folder: string, headers: readonly string[]) {
  return async (request: string): Promise<boolean> => {
    const [, method = 'GET', host = '', target = '', ip = OUTSIDE] =
      /^(?:([A-Z]+) )?([^/]+)(\/[^@]*)(?:@(.*))?$/.exec(request) ?? []
    const more = headers.flatMap(header => ['--header', header])
    const { out } = await sluice([
      'explain',
      method,
      target,
      '--host',
      host,
      '--ip',
      ip,
      ...more,
      '--config',
      folder,
      '--json',
    ])
    const { upstream, answer } = JSON.parse(out)
    return upstream !== null && (answer.status === null || answer.status < 400)
  }
}
