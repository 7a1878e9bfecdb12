/** `sluice check` accepts what the gateway starts with, and nothing more. */
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { type Configuration, load, loadOrFail } from '../../../gateway/configured/load.js'
import { Failure } from '../../../gateway/errors.js'
import { startGateway } from '../../../gateway/run/gateway.js'
import { openWrongKeys } from '../../../gateway/run/wrong-keys.js'
import { sluice } from '../../helpers/command.js'

const BAD = join('test', 'fixtures', 'bad')
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

/** The same configuration on free ports, without Redis: both are looked at when it is loaded. */
function onFreePorts(loaded: Configuration): Configuration {
  const { gateway } = loaded.config
  const listen = { ...gateway.listen, host: '127.0.0.1', port: 0, maxEventLoopDelay: 3_600_000 }
  const admin = { ...gateway.admin, host: '127.0.0.1', port: 0 }
  const config = { ...loaded.config, gateway: { ...gateway, listen, admin, redis: '' } }
  return { ...loaded, config }
}

/** Starts and stops a gateway as `serve` does. Returns the sentences of its refusal; '' if it started. */
async function serve(path: string): Promise<string> {
  try {
    const first = onFreePorts(await loadOrFail(path, {}, SILENT))
    const { wrongKeys, close } = openWrongKeys('', SILENT)
    const gateway = await startGateway({
      first,
      load: () => load(path, {}, SILENT),
      embedded: async () => ({ url: 'http://127.0.0.1:1', secret: 'secret' }),
      secret: Buffer.from('test'),
      wrongKeys,
      webhookTargets: { allowPrivate: false, allowHttp: false },
      log: SILENT,
    })
    await gateway.drain()
    await close()
    return ''
  } catch (error) {
    if (error instanceof Failure) return error.message
    throw error
  }
}

async function compare(t: Test, path: string, what: string): Promise<boolean> {
  const { code, err } = await sluice(['check', '--config', path])
  const refusal = await serve(path)
  t.equal(code, refusal === '' ? 0 : 1, what)
  t.equal(err.trim(), refusal, what)
  return refusal === ''
}

t.test('what check refuses, serve refuses with the same sentences; what it accepts starts', async t => {
  for (const name of readdirSync(BAD)) t.equal(await compare(t, join(BAD, name), name), name === 'base', name)
  t.ok(await compare(t, 'config', 'the shipped configuration'))
  t.ok(await compare(t, join('test', 'fixtures', 'lint'), 'warnings prevent no start'))
})

/** A small change of a text, as a person's slip would make it. */
const change = fc.record({
  file: fc.constantFrom(
    'gateway.yaml',
    'projects.yaml',
    'policies/in-flight.yaml',
    'policies/project-limits.yaml',
  ),
  line: fc.nat({ max: 30 }),
  how: fc.constantFrom('remove', 'repeat', 'swap', 'append', 'letter'),
  with: fc.constantFrom(
    'listen: { host: 127.0.0.1, port: 8081 }',
    'listen: { port: 70000 }',
    'trustedProxies: [0.0.0.0/0]',
    'trustedProxies: [10.1.2.3/8]',
    'unknownProject: { plan: growth, environment: staging, countBy: host }',
    'redis: "redis://u:p%@127.0.0.1"',
    'redis: "redis://127.0.0.1/zero"',
    'plugins: [./nowhere.js]',
    'identify: [header, nobody]',
    'observe: []',
    'log: { decisions: all }',
  ),
})

function changed(
  text: string,
  { line, how, with: text2 }: typeof change extends fc.Arbitrary<infer T> ? T : never,
) {
  const lines = text.split('\n')
  const at = line % lines.length
  const chosen = lines[at] as string
  if (how === 'remove') lines.splice(at, 1)
  else if (how === 'repeat') lines.splice(at, 0, chosen)
  else if (how === 'swap') lines[at] = chosen.replace(/(\w+): (\w+)/, '$2: $1')
  else if (how === 'letter') lines[at] = chosen.replace(/[a-z](?=[a-z]*:)/, 'x')
  else return `${text}\n${text2}\n`
  return lines.join('\n')
}

t.test('the same holds for configurations with slips', async t => {
  let [good, bad] = [0, 0]
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 2 }), async changes => {
      const folder = t.testdir()
      cpSync(join(BAD, 'base'), folder, { recursive: true })
      for (const one of changes) {
        const file = join(folder, one.file)
        if (existsSync(file)) writeFileSync(file, changed(readFileSync(file, 'utf8'), one))
      }
      if (await compare(t, folder, JSON.stringify(changes))) good += 1
      else bad += 1
      return t.passing()
    }),
    { numRuns: 80 },
  )
  t.ok(good > 5 && bad > 20, `${good} were good, ${bad} were not`)
})
