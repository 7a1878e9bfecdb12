/** A reload that was refused is tried again by itself: what changed meanwhile must not wait for the next change. */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ReloadRetries } from '../../../gateway/run/reload-retries.js'
import { send } from '../../helpers/http.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { limits, start } from './reloading.js'
import { twoWorkers } from './workers.js'

t.test('a change that a broken file of keys held up takes effect once that file is mended', async t => {
  const gateway = await start(t, { settings: 'apiKeys: api-keys.json\nidentify: [api-key, host]' })
  const quota = async () => (await gateway.ask('/scim/x')).headers['x-ratelimit-limit']
  gateway.write('api-keys.json', '{bro')
  t.equal((await gateway.edit('policies/limits.yaml', limits({ scim: 7 }))).status, 422)
  const reloads = () => gateway.lines.filter(({ trigger }) => trigger !== undefined)
  await sleep(2500)
  t.match(reloads(), { length: 1 }, 'the same refusal is logged once')
  t.match((await send(`${gateway.adminUrl}/metrics`)).body, 'sluice_policy_reloads_total{result="refused"} 1')

  gateway.write('api-keys.json', '{"version":1,"keys":[]}')
  await waitUntil('the change', async () => String(await quota()).includes(', 7;w=60'), 8000)
  t.match(await gateway.state(), { lastReload: { result: 'loaded', trigger: 'retry' } })

  gateway.write('api-keys.json', '{bro')
  await gateway.edit('policies/limits.yaml', limits({ scim: 8 }))
  gateway.write('policies/limits.yaml', limits({ scim: 9 }))
  gateway.write('api-keys.json', '{"version":1,"keys":[]}')
  await sleep(2500)
  t.match(await quota(), /, 7;w=60/, 'a file that may still be written is left to the watch')
})

t.test('what only other contents of the files can mend is not tried again', async t => {
  const gateway = await start(t)
  const loads = t.capture(gateway.reloader, 'reload', gateway.reloader.reload)
  t.equal((await gateway.edit('policies/limits.yaml', 'version: 1\nkind: project-limit\n')).status, 422)
  loads()
  await sleep(2500)
  t.match(loads(), { length: 0 }, 'a wrong word in a policy')
})

t.test('pauses between attempts grow to a minute, and begin anew after a success', t => {
  const pauses: number[] = []
  t.intercept(globalThis, 'setTimeout', {
    value: (_attempt: () => void, ms: number) => {
      pauses.push(ms / 1000)
      return { unref: () => undefined }
    },
  })
  const retries = new ReloadRetries(() => undefined)
  for (let i = 0; i < 7; i += 1) retries.schedule()
  retries.reset()
  retries.schedule()
  retries.close()
  retries.schedule()
  t.same(pauses, [2, 4, 8, 16, 32, 60, 60, 2], 'none after it was closed')
  t.end()
})

t.test('a change that a worker held up takes effect once it answers', async t => {
  const started = await twoWorkers(t, { apiKeys: 'api-keys.json', identify: [{ plugin: 'api-key' }] })
  if (started === undefined) return
  const { folder, gateway } = started
  interface State {
    readonly workers: readonly { readonly pid: number; readonly answers: boolean }[]
    readonly lastReload: { readonly result: string; readonly trigger: string } | null
  }
  const state = async () => (await send(`${gateway.adminUrl}/state`)).json<State>()
  const [stopped] = (await state()).workers
  process.kill(stopped?.pid ?? 0, 'SIGSTOP')
  await waitUntil('it is silent', async () => (await state()).workers.some(({ answers }) => !answers))
  const file = join(folder, 'policies', 'limits.yaml')
  writeFileSync(`${file}.new`, limits({ scim: 7 }))
  renameSync(`${file}.new`, file)
  await waitUntil('the refusal', async () => (await state()).lastReload?.result === 'refused')
  t.match((await state()).lastReload, { problems: [{ message: /tried again by itself/ }] })

  process.kill(stopped?.pid ?? 0, 'SIGCONT')
  await waitUntil('the change', async () => (await state()).lastReload?.result === 'loaded', 15_000)
  t.match((await state()).lastReload, { trigger: 'retry' })
})
