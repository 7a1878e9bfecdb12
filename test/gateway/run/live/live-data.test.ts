/** The live data for several clients, when a snapshot cannot be made. */
import t from 'tap'
import { loadOrFail } from '../../../../gateway/configured/load.js'
import { EMPTY } from '../../../../gateway/overrides/store.js'
import { liveData } from '../../../../gateway/run/live/live-data.js'
import { inProject } from '../../../helpers/root.js'
import { waitUntil } from '../../../helpers/wait.js'

t.test('a client whose first snapshot failed gets the next one', async t => {
  const errors: object[] = []
  const log = { debug() {}, info() {}, warn() {}, error: (fields: object) => errors.push(fields) }
  const loaded = await loadOrFail(inProject('config'), {}, log)
  let asked = 0
  const live = liveData({
    host: {
      live() {
        asked += 1
        if (asked === 1) throw new Error('a worker has gone')
        return { parts: [], missing: [] }
      },
      history: () => ({ parts: [], missing: [] }),
      workers: undefined,
      inForce: { loaded, current: loaded, loadedAt: new Date() },
    },
    reloader: { last: undefined, former: undefined },
    redis: '',
    overrides: { list: () => [], watch() {} },
    runtime: { contents: EMPTY },
    log,
  })
  const events: string[] = []
  t.teardown(live.watch(event => events.push(event)))
  await waitUntil('a snapshot', () => events.includes('live'))
  t.match(errors, [{ err: { message: 'a worker has gone' } }])
})
