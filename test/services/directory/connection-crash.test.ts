/** The process is killed while directories are deleted: each either still exists, or is gone and was announced. */
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { mongoUrl } from '../../helpers/mongo.js'
import { waitUntil } from '../../helpers/wait.js'
import { apiKey, startReceiver } from './harness.js'
import { startServiceProcess } from './service-process.js'

const count = 12

/** @param takeoverMs when another process finishes committed changes, on stores where a restart does not */
async function crash(t: Test, env: Record<string, string>, takeoverMs: number): Promise<void> {
  const receiver = await startReceiver(t)
  const settings = { API_KEYS: apiKey, DATA_DIR: t.testdir(), WEBHOOK_ALLOW_PRIVATE: 'true', ...env }
  let service = await startServiceProcess(t, settings)
  const manage = (method: string, path: string, body?: object) =>
    fetch(`${service.url}/api/v1/directory-sync${path}`, {
      method,
      headers: { authorization: `Api-Key ${apiKey}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
  for (const delay of [10, 400]) {
    const webhook = { webhook_url: receiver.url, webhook_secret: 'hush-hush' }
    const ids: string[] = []
    for (let each = 0; each < count; each++) {
      const made = await manage('POST', '', { tenant: `t${each}`, product: `p${delay}`, ...webhook })
      ids.push(((await made.json()) as { data: { id: string } }).data.id)
    }
    const deletions = ids.map(id => manage('DELETE', `/${id}`).catch(() => undefined))
    await sleep(delay)
    await service.kill()
    const answered = (await Promise.all(deletions)).map(answer => answer?.status === 200)
    service = await startServiceProcess(t, settings)
    await sleep(takeoverMs)
    const told = (id: string) =>
      receiver.calls.some(({ event }) => event.directory_id === id && event.event === 'dsync.deleted')
    let gone = 0
    for (const [index, id] of ids.entries()) {
      const isGone = await waitUntil(
        'a settled state',
        async () => {
          const isThere = (await manage('GET', `/${id}`)).status === 200
          return isThere !== told(id) && { isThere }
        },
        20_000,
      )
      if (!isGone.isThere) gone += 1
      if (answered[index]) t.notOk(isGone.isThere, 'a confirmed deletion is done')
    }
    t.comment(`${gone} of ${count} were deleted, ${answered.filter(Boolean).length} deletions were confirmed`)
  }
  t.pass('each directory either exists or has been announced as deleted')
}

t.jobs = 2
t.setTimeout(120_000)
t.test('SQLite: a directory is deleted and announced in one step, even when the process is killed', async t =>
  crash(t, {}, 0),
)
t.test(
  'MongoDB: a directory is deleted and announced in one step, even when the process is killed',
  async t => {
    const MONGODB_URL = await mongoUrl(t)
    if (MONGODB_URL !== undefined) await crash(t, { MONGODB_URL }, 2500)
  },
)
