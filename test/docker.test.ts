/** The image's promises, read from its recipe: building it takes a Docker daemon, which a test may not have. */
import { existsSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { inProject, projectFile } from './helpers/root.js'

interface Instruction {
  readonly word: string
  readonly text: string
}
interface Stage {
  readonly image: string
  readonly name: string | undefined
  readonly instructions: readonly Instruction[]
}

function stagesOf(dockerfile: string): Stage[] {
  const stages: { image: string; name: string | undefined; instructions: Instruction[] }[] = []
  for (const line of dockerfile.replace(/\\\n/g, ' ').split('\n')) {
    const [, word = '', text = ''] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? []
    if (word === 'FROM') {
      const [image = '', , name] = text.split(/\s+/)
      stages.push({ image, name, instructions: [] })
    } else if (word) {
      stages.at(-1)?.instructions.push({ word, text })
    }
  }
  return stages
}

const stages = stagesOf(projectFile('Dockerfile'))
const runtime = stages.at(-1)
const inRuntime = (word: string) =>
  (runtime?.instructions ?? []).filter(each => each.word === word).map(each => each.text)

t.test('the image is built in stages and the last one carries no development tools', async t => {
  t.ok(stages.length > 1, 'several stages')
  for (const { image } of stages) t.equal(image, 'node:24-slim')
  t.notMatch(inRuntime('RUN').join('\n'), /npm|tsc/, 'nothing is installed or compiled in the last stage')

  const modules = inRuntime('COPY').find(text => text.includes('node_modules'))
  const source = /--from=(\w+)/.exec(modules ?? '')?.[1]
  const installs = stages
    .find(({ name }) => name === source)
    ?.instructions.filter(({ word }) => word === 'RUN')
  t.match(
    installs?.map(({ text }) => text).join('\n'),
    /npm ci --omit=dev/,
    'its packages come without development ones',
  )
})

t.test('the gateway runs without root, as the first process, and keeps its data in a volume', async t => {
  t.same(inRuntime('USER'), ['node'])
  t.same(JSON.parse(inRuntime('ENTRYPOINT')[0] ?? ''), ['node', 'dist/gateway/cli.js'])
  t.same(JSON.parse(inRuntime('CMD')[0] ?? ''), ['serve', '--config', 'config/gateway.yaml'])
  const [data] = inRuntime('VOLUME')
  t.match(inRuntime('ENV').join(' '), `DATA_DIR=${data}`)
  t.ok(
    inRuntime('RUN').some(text => text.includes(`-o node`) && text.includes(String(data))),
    'the volume belongs to the user who runs',
  )
})

t.test('the image asks its own command for its health', async t => {
  t.match(inRuntime('HEALTHCHECK')[0], /CMD \["node", "dist\/gateway\/cli\.js", "health"\]$/)
})

t.test(
  'the configuration lets a container listen to the outside and keeps the admin port inside',
  async t => {
    t.match(inRuntime('ENV').join(' '), 'LISTEN_HOST=0.0.0.0')
    const { listen, admin } = parse(projectFile('config', 'gateway.yaml'))
    t.equal(listen.host, '$' + '{LISTEN_HOST:-127.0.0.1}')
    t.equal(admin.host, '$' + '{ADMIN_HOST:-127.0.0.1}')
  },
)

t.test('the builder is sent every file that is copied, and no others', async t => {
  const [all, ...rest] = projectFile('.dockerignore')
    .split('\n')
    .filter(line => line && !line.startsWith('#'))
  t.equal(all, '*')
  const sent = rest.filter(line => line.startsWith('!')).map(line => line.slice(1))
  const copied = stages
    .flatMap(({ instructions }) => instructions)
    .filter(({ word, text }) => word === 'COPY' && !text.startsWith('--from'))
    .flatMap(({ text }) => text.split(/\s+/).slice(0, -1))
  t.same([...new Set(copied)].sort(), sent.sort())
  for (const path of sent) t.ok(existsSync(inProject(path)), path)
})

t.test('compose starts the gateway once Redis and MongoDB are healthy, with no rights to spare', async t => {
  const { services, volumes } = parse(projectFile('compose.yaml'))
  const { gateway } = services
  for (const [name, { condition }] of Object.entries<{ condition: string }>(gateway.depends_on)) {
    t.equal(condition, 'service_healthy')
    t.ok(services[name].healthcheck, `${name} says when it is healthy`)
  }
  t.equal(new URL(gateway.environment.REDIS_URL).hostname, 'redis')
  t.equal(new URL(gateway.environment.MONGODB_URL).hostname, 'mongo')
  t.same(gateway.cap_drop, ['ALL'])
  t.equal(gateway.read_only, true)
  for (const { volumes: used = [] } of Object.values<{ volumes?: string[] }>(services)) {
    for (const mount of used) t.ok((mount.split(':')[0] ?? '') in volumes, mount)
  }
})
