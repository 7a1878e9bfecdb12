/** Counters of rules that count by more than the project, and of unknown hosts, are read and reset by the parts of their key. */
import t from 'tap'
import { send } from '../../helpers/http.js'
import { start } from './operated.js'

t.test('a counter is named by a header, and a project by its host', async t => {
  const { ask, url } = await start(t)
  const post = async () =>
    (
      await send(`${url}/header`, {
        method: 'POST',
        headers: { host: 'example.test', 'x-device': 'canary' },
      })
    ).status
  t.same([await post(), await post()], [200, 429])
  const named = `header=${encodeURIComponent('x-device: canary')}`
  const told = await ask(`/projects/host:example.test/counters?${named}`)
  t.match(told.body, /"rule":"by-header"[^\]]*"used":2/)
  t.match(told.body, /"policy":"all.sustained"[^}]*"used":1/)
  t.equal((await ask(`/counters/by-header?${named}`, 'DELETE')).status, 200)
  t.equal(await post(), 200)
})
