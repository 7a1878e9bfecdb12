/** What a variable's file says is part of the configuration: the same in all workers, and watched. */
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sluice } from '../../helpers/command.js'
import { send } from '../../helpers/http.js'
import { temporaryFolder } from '../../helpers/scope.js'
import { sleep, waitUntil } from '../../helpers/wait.js'
import { replaceWorker, twoWorkers } from './workers.js'

t.test('a new worker has what was read when the configuration was, and a change is taken by all', async t => {
  const secrets = temporaryFolder(t, 'secrets')
  const file = join(secrets, 'header')
  const write = (text: string) => {
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  }
  write('x-first\n')
  const level = join(secrets, 'level')
  writeFileSync(level, 'info')
  const header = '${' + 'KEY_HEADER}'
  const started = await twoWorkers(
    t,
    { apiKeys: 'api-keys.json', identify: [{ plugin: 'api-key', header }] },
    { KEY_HEADER_FILE: file, LOG_LEVEL_FILE: level },
  )
  if (started === undefined) return
  const { folder, gateway } = started
  const { out } = await sluice(['keys', 'add', '--project', 'acme', '--name', 'ci', '--config', folder])
  const statuses = async (name: string) => {
    const headers = { [name]: out.trim(), connection: 'close' }
    const all = await Promise.all(Array.from({ length: 16 }, () => send(gateway.url, { headers })))
    return [...new Set(all.map(({ status }) => status))].join()
  }
  await waitUntil('the key', async () => (await statuses('x-first')) === '200')

  rmSync(file)
  rmSync(level)
  await replaceWorker(gateway)
  await replaceWorker(gateway)
  t.equal(await statuses('x-first'), '200', 'no worker of before is left')
  const state = async () =>
    (await send(`${gateway.adminUrl}/state`)).json<{
      lastReload: { result: string; trigger: string } | null
    }>()
  await waitUntil('the refusal', async () => (await state()).lastReload?.result === 'refused')

  write('x-second')
  await waitUntil('the change', async () => (await state()).lastReload?.result === 'loaded')
  t.match(await state(), { lastReload: { trigger: 'watch' } })
  await sleep(100)
  t.equal(await statuses('x-second'), '200')
  t.equal(await statuses('x-first'), '401')
})
