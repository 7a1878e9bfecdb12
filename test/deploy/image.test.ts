/** What the image promises, checked in its Dockerfile: building it takes a Docker daemon, which a test may not have. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { runTool } from '../helpers/deploy-tools.js'
import { inProject, projectFile } from '../helpers/root.js'
import { waitUntil } from '../helpers/wait.js'

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

t.test('hadolint finds no fault in the Dockerfile', async t => {
  runTool(t, 'hadolint', ['Dockerfile'])
})

t.test(
  'images are pinned by digest, and the last one has no shell and no development dependencies',
  async t => {
    for (const { image } of stages) t.match(image, /@sha256:[0-9a-f]{64}$/)
    t.match(runtime?.image, 'distroless')
    t.same(inRuntime('RUN'), [])
    const [build] = stages
    const runs = build?.instructions.filter(({ word }) => word === 'RUN').at(-1)?.text
    t.match(runs, /npm prune --omit=dev/)
  },
)

t.test('the gateway runs without root, as the first process, and keeps its data in a volume', async t => {
  t.same(inRuntime('USER'), ['65532:65532'])
  t.same(JSON.parse(inRuntime('ENTRYPOINT')[0] ?? ''), ['/nodejs/bin/node', 'dist/gateway/cli.js'])
  t.same(JSON.parse(inRuntime('CMD')[0] ?? ''), ['serve', '--config', 'config/gateway.yaml'])
  const [data] = inRuntime('VOLUME')
  t.match(inRuntime('ENV').join(' '), `DATA_DIR=${data}`)
  t.ok(
    inRuntime('COPY').includes(`--from=build --chown=65532:65532 ${data} ${data}`),
    'the user of the gateway owns the data folder',
  )
})

t.test('the image checks its health with its own command', async t => {
  t.match(inRuntime('HEALTHCHECK')[0], /CMD \["\/nodejs\/bin\/node", "dist\/gateway\/cli\.js", "health"\]$/)
})

t.test('the container listens on all interfaces and keeps the admin port on loopback', async t => {
  t.match(inRuntime('ENV').join(' '), 'LISTEN_HOST=0.0.0.0')
  const { listen, admin } = parse(projectFile('config', 'gateway.yaml'))
  t.equal(listen.host, '$' + '{LISTEN_HOST:-127.0.0.1}')
  t.equal(admin.host, '$' + '{ADMIN_HOST:-127.0.0.1}')
})

t.test('the build context holds every file that is copied, and no others', async t => {
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
  const compiledBy = projectFile('scripts', 'lib', 'build.mjs').match(/tsconfig[\w.]*json/g) ?? []
  t.ok(compiledBy.length > 0)
  for (const name of compiledBy)
    t.ok(sent.includes(name), `${name}, which the build compiles with, is in the build context`)
})

t.test('the files in the image are enough to run a gateway', async t => {
  const image = mkdtempSync(join(tmpdir(), 'sluice-image-'))
  t.teardown(() => rmSync(image, { recursive: true }))
  const { packages } = JSON.parse(projectFile('package-lock.json')) as {
    packages: Record<string, { dev?: boolean; devOptional?: boolean }>
  }
  for (const [path, { dev, devOptional }] of Object.entries(packages)) {
    if (dev || devOptional || !/^node_modules\/(@[^/]+\/)?[^/]+$/.test(path)) continue
    mkdirSync(dirname(join(image, path)), { recursive: true })
    symlinkSync(inProject(path), join(image, path))
  }
  const copied = inRuntime('COPY').flatMap(text => text.split(/\s+/).slice(0, -1))
  for (const path of copied.map(source => source.replace(/^\/app\//, ''))) {
    if (path.startsWith('-') || path === '/data' || path === 'node_modules') continue
    const filter = (source: string) => source !== inProject('dist', 'test')
    cpSync(inProject(path), join(image, path), { recursive: true, filter })
  }
  // With symlinks preserved, a linked package resolves others only beside its link, where no development tool is.
  const flags = ['--preserve-symlinks', '--preserve-symlinks-main']
  const args = [...flags, 'dist/gateway/cli.js', 'serve', '--config', 'config/gateway.yaml']
  const child = spawn(process.execPath, args, {
    cwd: image,
    env: { PATH: process.env.PATH ?? '', DATA_DIR: join(image, 'data'), PORT: '0', ADMIN_PORT: '0' },
  })
  t.teardown(() => child.kill('SIGKILL'))
  const ended = once(child, 'exit')
  let out = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', text => {
      out += text
    })
  }
  await waitUntil(
    'the gateway to be ready',
    () => out.includes('Sluice is ready') || child.exitCode !== null,
    20_000,
  )
  child.kill('SIGTERM')
  t.same(await ended, [0, null], out)
})
