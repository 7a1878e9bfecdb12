/** The manifests for Kubernetes, as kustomize builds them. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { runTool } from '../helpers/deploy-tools.js'
import { inProject, projectFile } from '../helpers/root.js'

/** What `kubectl apply -k` would send; undefined after reporting the test as skipped. */
const built = (t: Test) => runTool(t, 'kustomize', ['build', 'deploy/kubernetes'])

/** The first object of a kind. */
const object = (text: string, kind: string) =>
  parseAllDocuments(text)
    .map(document => document.toJS())
    .find(each => each.kind === kind)

function folderOf(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-kubernetes-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

t.test('the oldest and the newest supported Kubernetes accept the manifests in strict mode', async t => {
  const text = built(t)
  if (text === undefined) return
  const file = join(folderOf(t), 'all.yaml')
  writeFileSync(file, text)
  for (const version of ['1.30.0', '1.37.0']) {
    runTool(t, 'kubernetes-validate', ['--quiet', '--strict', '-k', version, file])
  }
})

t.test('the mounted ConfigMap holds the whole configuration of config/', async t => {
  const text = built(t)
  if (text === undefined) return
  const { data } = object(text, 'ConfigMap')
  const { volumes } = object(text, 'Deployment').spec.template.spec
  const { items } = volumes.find(({ name }: { name: string }) => name === 'config').configMap
  const folder = folderOf(t)
  // As the kubelet lays it out: links into a folder that it swaps atomically.
  for (const { key, path } of items) {
    const file = join(folder, '..data', path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, data[key])
  }
  for (const name of readdirSync(join(folder, '..data')))
    symlinkSync(join('..data', name), join(folder, name))

  t.same(Object.keys(data).sort(), items.map(({ key }: { key: string }) => key).sort())
  const revision = (config: string) => {
    const args = [inProject('dist', 'gateway', 'cli.js'), 'check', '--config', config]
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    return /revision (\S+)\./.exec(stdout + stderr)?.[1]
  }
  t.match(revision(folder), /^sha256:/)
  t.equal(revision(folder), revision(inProject('config')))
})

t.test('the termination grace period leaves requests in flight the whole drain time', async t => {
  const text = built(t)
  if (text === undefined) return
  const { spec } = object(text, 'Deployment').spec.template
  const { sleep } = spec.containers[0].lifecycle.preStop
  const drain = Number(/^drain: (\d+)s/m.exec(projectFile('config', 'gateway.yaml'))?.[1])
  t.ok(spec.terminationGracePeriodSeconds >= sleep.seconds + drain + 10)
})

t.test('keys come from one Secret, and a NetworkPolicy restricts the admin port', async t => {
  const text = built(t)
  if (text === undefined) return
  const { volumes, containers } = object(text, 'Deployment').spec.template.spec
  const [{ env, volumeMounts, ports }] = containers
  const { mountPath } = volumeMounts.find(({ name }: { name: string }) => name === 'secrets')
  const page = projectFile('docs', 'deploy.md')
  const files = env.filter(({ name }: { name: string }) => name.endsWith('_FILE'))
  t.ok(files.length > 1)
  for (const { name, value } of files) {
    t.equal(dirname(value), mountPath, name)
    t.match(
      page,
      `--from-literal=${value.slice(mountPath.length + 1)}=`,
      `${name} is in the Secret that the page creates`,
    )
  }
  const { secretName } = volumes.find(({ name }: { name: string }) => name === 'secrets').secret
  const monitor = parse(projectFile('deploy', 'kubernetes', 'prometheus-operator', 'pod-monitor.yaml')).spec
  const [{ port, authorization }] = monitor.podMetricsEndpoints
  t.same(authorization.credentials, { name: secretName, key: 'admin-key' })
  t.ok(ports.some(({ name }: { name: string }) => name === port))
  const [open, restricted] = object(text, 'NetworkPolicy').spec.ingress
  t.same(open, { ports: [{ port: 'http' }] })
  t.same(restricted.ports, [{ port: 'admin' }])
  t.ok(restricted.from.length > 0)
})

t.test('the autoscaler uses a series that the Prometheus adapter knows', async t => {
  const text = built(t)
  if (text === undefined) return
  const [{ pods }] = object(text, 'HorizontalPodAutoscaler').spec.metrics
  const [rule] = parse(projectFile('deploy', 'kubernetes', 'prometheus-adapter.yaml')).rules.custom
  t.match(rule.seriesQuery, new RegExp(`^${pods.metric.name}\\{`))
})
