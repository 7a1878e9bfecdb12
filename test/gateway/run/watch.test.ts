/** How changes of the configuration files are noticed, however they are written. */
import { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Watch, watchSources } from '../../../gateway/run/watch.js'
import type { TestGateway } from '../../helpers/gateway.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { inFlight, limits, start } from './reloading.js'

/** Relies on file events; polls only every `pollMs`, by default practically never. */
function watching(t: Test, { reloader }: TestGateway, pollMs = 3_600_000): Watch & { reloads(): number } {
  let count = 0
  const changed = () => {
    count += 1
    return reloader.reload('watch')
  }
  const log = { debug() {}, info() {}, warn() {}, error: (fields: object) => t.fail('watch', fields) }
  const watch = watchSources({
    sources: () => reloader.sources,
    idle: () => reloader.idle(),
    changed,
    log,
    pollMs,
  })
  t.teardown(() => watch.close())
  return { ...watch, reloads: () => count }
}

t.test('a changed file is noticed, however it was written, and read once', async t => {
  const gateway = await start(t)
  const watch = watching(t, gateway)
  const path = join(gateway.folder, 'policies', 'limits.yaml')
  const seen = async (quota: number) => {
    const limit = async () => String((await gateway.ask('/scim/x')).headers['x-ratelimit-limit'])
    await waitUntil(`${quota} in force`, async () => (await limit()).endsWith(`, ${quota};w=60`))
  }

  writeFileSync(path, limits({ scim: 101 }))
  await seen(101)
  writeFileSync(`${path}.new`, limits({ scim: 102 }))
  renameSync(`${path}.new`, path)
  await seen(102)
  t.equal(watch.reloads(), 2)

  const more = join(gateway.folder, 'policies', 'more.yaml')
  writeFileSync(more, inFlight(1))
  await waitUntil('a new file', () => watch.reloads() === 3)
  rmSync(more)
  await waitUntil('a removed file', () => watch.reloads() === 4)
  writeFileSync(join(gateway.folder, 'policies', '.limits.yaml.swp'), 'an editor at work')
  await sleep(300)
  t.equal(watch.reloads(), 4, 'a file that is not read causes no reload')

  const folder = join(gateway.folder, 'policies')
  renameSync(folder, `${folder}.old`)
  mkdirSync(folder)
  writeFileSync(path, limits({ scim: 103 }))
  await seen(103)
  writeFileSync(path, limits({ scim: 104 }))
  await seen(104)
})

t.test('a Kubernetes volume is noticed when its links are swapped, more than once', async t => {
  const gateway = await start(t)
  const policies = join(gateway.folder, 'policies')
  const volume = (name: string, scim: number) => {
    mkdirSync(join(policies, name))
    writeFileSync(join(policies, name, 'limits.yaml'), limits({ scim }))
    symlinkSync(name, join(policies, '..data_tmp'))
    renameSync(join(policies, '..data_tmp'), join(policies, '..data'))
  }
  rmSync(join(policies, 'limits.yaml'))
  volume('..2026_01', 101)
  symlinkSync(join('..data', 'limits.yaml'), join(policies, 'limits.yaml'))
  t.equal((await gateway.reloader.reload('SIGHUP')).result, 'loaded')

  const watch = watching(t, gateway)
  for (const [i, scim] of [102, 103].entries()) {
    volume(`..2026_02_${i}`, scim)
    await waitUntil('the swap', () => watch.reloads() === i + 1)
    t.match((await gateway.ask('/scim/x')).headers, { 'x-ratelimit-limit': new RegExp(`${scim};w=60`) })
  }
})

t.test('a change that was reloaded by request is not reloaded again', async t => {
  const gateway = await start(t)
  const watch = watching(t, gateway, 20)
  for (const scim of [201, 202, 203]) {
    gateway.write('policies/limits.yaml', limits({ scim }))
    if (scim === 202) await sleep(60)
    const [answer] = await Promise.all([gateway.edit('policies/limits.yaml', limits({ scim })), sleep(400)])
    t.equal(answer.json<{ revision: string }>().revision, (await gateway.state()).revision)
  }
  t.equal(watch.reloads(), 0)
  t.equal(gateway.lines.filter(({ msg }) => msg === 'Configuration reloaded').length, 3)
})

t.test('a change without a file event is found by polling', async t => {
  const gateway = await start(t)
  const outside = t.testdir({ 'limits.yaml': limits() })
  const path = join(gateway.folder, 'policies', 'limits.yaml')
  rmSync(path)
  symlinkSync(join(outside, 'limits.yaml'), path)
  await gateway.reloader.reload('SIGHUP')
  const watch = watching(t, gateway, 50)
  // Nothing changes in a watched folder or file: the name now refers to another file, in a folder that is not watched.
  writeFileSync(join(outside, 'new'), limits({ scim: 7 }))
  renameSync(join(outside, 'new'), join(outside, 'limits.yaml'))
  await waitUntil('the change', () => watch.reloads() === 1)
  t.match((await gateway.ask('/scim/x')).headers, { 'x-ratelimit-limit': /7;w=60/ })
})

t.test(
  'a file still being written is waited for, and half a file is refused until it is complete',
  async t => {
    const gateway = await start(t)
    const watch = watching(t, gateway)
    const path = join(gateway.folder, 'policies', 'limits.yaml')
    const whole = limits({ scim: 77 })
    writeFileSync(path, '')
    for (let at = 0; at < whole.length; at += 40) {
      appendFileSync(path, whole.slice(at, at + 40))
      await sleep(25)
    }
    await waitUntil('the change', () => watch.reloads() === 1)
    t.match((await gateway.ask('/scim/x')).headers, { 'x-ratelimit-limit': /77;w=60/ })
    t.equal((await gateway.state()).lastReload?.result, 'loaded')

    const other = limits({ scim: 78 })
    writeFileSync(path, other.slice(0, 120))
    await waitUntil('the half', async () => (await gateway.state()).lastReload?.result === 'refused')
    appendFileSync(path, other.slice(120))
    await waitUntil('the rest', async () => (await gateway.state()).lastReload?.result === 'loaded')
    t.match((await gateway.ask('/scim/x')).headers, { 'x-ratelimit-limit': /78;w=60/ })
  },
)
