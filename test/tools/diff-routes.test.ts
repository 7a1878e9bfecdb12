/** `sluice diff` tells what changed in routes. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sluice } from '../helpers/command.js'

function configured(t: Test, name: string, route: string): string {
  const folder = join(t.testdirName, name)
  mkdirSync(join(folder, 'policies'), { recursive: true })
  const upstreams = 'upstreams: { app: { url: "http://127.0.0.1:1" }, canary: { url: "http://127.0.0.1:2" } }'
  writeFileSync(
    join(folder, 'gateway.yaml'),
    `version: 1\n${upstreams}\nroutes: [{ path: /v1/**, ${route} }]\n`,
  )
  writeFileSync(join(folder, 'projects.yaml'), 'version: 1\nprojects: []\n')
  return folder
}

t.test('every key of a route is compared, and no header value is shown', async t => {
  t.testdir({})
  const before = configured(t, 'before', 'upstream: app, headers: { request: { set: { x-key: secret-1 } } }')
  const after = configured(
    t,
    'after',
    'split: [{ upstream: app, share: 90% }, { upstream: canary, share: 10% }], stripPrefix: /v1, maxBody: 1KiB, headers: { request: { set: { x-key: secret-2 } } }',
  )
  const { out } = await sluice(['diff', before, after])
  t.match(out, /route \/v1\/\*\*.*app 90%, canary 10%/s)
  t.match(out, /route \/v1\/\*\* stripPrefix.*\/v1/)
  t.match(out, /route \/v1\/\*\* maxBody.*1024/)
  t.match(out, /route \/v1\/\*\* headers.*request set x-key/)
  t.notMatch(out, /secret/)
})
