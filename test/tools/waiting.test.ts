/** What the commands say of rules that let requests wait. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sluice } from '../helpers/command.js'

interface Written {
  readonly mode?: string
  readonly bucket?: string
  readonly rule?: string
}

/** A configuration with a bucket and an in-flight rule, and what each says about waiting. */
function written(
  parent: string,
  name: string,
  { mode = 'enforce', bucket = '', rule = '' }: Written,
): string {
  const files = {
    'gateway.yaml':
      'version: 1\nupstreams: { app: { url: "http://127.0.0.1:1" } }\nroutes: [{ path: /**, upstream: app }]\n',
    'projects.yaml':
      'version: 1\nprojects: [{ id: acme, plan: growth, environment: production, hosts: [acme.localhost] }]\n',
    'policies/limits.yaml': `version: 1
kind: project-limits
mode: ${mode}
buckets:
  paced: { match: ["*"]${bucket} }
limits: [{ for: [{}], quotas: { paced: { burst: 10 } } }]
`,
    'policies/slots.yaml': `version: 1
kind: in-flight
rules: [{ id: exports, match: [POST /exports], key: [project], max: 1, mode: ${mode}${rule} }]
`,
  }
  const folder = join(parent, name)
  mkdirSync(join(folder, 'policies'), { recursive: true })
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text)
  return folder
}

t.test('check notes that nobody waits for what is report-only', async t => {
  const waits = { bucket: ', wait: 300ms', rule: ', wait: 1s, waiting: 5' }
  const folder = t.testdir({})
  const said = 'Nobody waits while this is report-only: "wait" has an effect once it is enforced.'
  const trial = await sluice([
    'check',
    '--config',
    written(folder, 'trial', { mode: 'report-only', ...waits }),
  ])
  t.equal(trial.code, 0)
  t.match(trial.out, `limits.yaml:5:32 buckets.paced.wait: note: ${said}`)
  t.match(trial.out, `rules[0].wait: note: ${said}`)
  const enforced = await sluice(['check', '--config', written(folder, 'enforced', waits)])
  t.notMatch(enforced.out, said)
})

t.test('diff and limits say how long requests wait', async t => {
  const waits = { bucket: ', wait: 300ms', rule: ', wait: 1s, waiting: 5' }
  const folder = t.testdir({})
  const [before, after] = [written(folder, 'before', {}), written(folder, 'after', waits)]
  const changes = await sluice(['diff', before, after])
  t.match(changes.out, 'paced: waits up to 0.3 s, 100 at a time')
  t.match(changes.out, 'exports: wait 1 s')
  const limits = await sluice(['check', '--config', after, '--project', 'acme'], { columns: 200 })
  t.match(limits.out, 'waits up to 0.3 s, 100 at a time')
  const rules = await sluice(['check', '--config', after, '--table'], { columns: 200 })
  t.match(rules.out, '1 at a time, others wait up to 1 s, 5 at a time')
})
