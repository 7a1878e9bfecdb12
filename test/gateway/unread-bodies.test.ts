/** Rules that do not need a request's body are asked before it is read. */
import t from 'tap'
import { Decider } from '../../gateway/decide/decide.js'
import type { Questions } from '../../gateway/decide/question.js'
import type { Answer, Ask, CounterStore } from '../../gateway/decide/store/store.js'
import { testGateway } from '../helpers/gateway.js'
import { send, startApp } from '../helpers/http.js'
import { rawClient } from '../helpers/raw.js'
import { onEachStore } from '../helpers/stores.js'
import { metered } from './decide/deciding.js'

const RULES = `version: 1
kind: volumetric
rules:
  - id: by-client
    match: [POST /r]
    key: [header:x-client]
    missing: skip
    quota: { requests: 2, per: 60s }
  - id: recovery
    match: [POST /r]
    key: [email-or-flow]
    missing: skip
    quota: { requests: 1, per: 60s }
`

onEachStore(t, 'a request that another rule refuses is refused before its body', async (t, store) => {
  const upstream = await startApp(t, (req, res) => {
    req.resume().on('end', () => res.end())
  })
  const settings = (await store.settings(t)) as string
  const gateway = await testGateway(t, { upstream, settings, policies: { 'volumetric.yaml': RULES } })
  const ask = async (client: string, email: string) => {
    const headers = { host: 'acme.localhost', 'x-client': client, 'content-type': 'application/json' }
    const body = JSON.stringify({ email })
    return (await send(`${gateway.url}/r`, { method: 'POST', headers, body })).status
  }
  t.equal(await ask('1', 'a'), 200)
  t.equal(await ask('1', 'b'), 200)
  for (const left of ['the first refusal', 'a refusal that is remembered']) {
    const client = await rawClient(Number(new URL(gateway.url).port))
    t.teardown(() => client.socket.destroy())
    client.send('POST /r HTTP/1.1\r\nHost: acme.localhost\r\nX-Client: 1\r\nContent-Length: 10\r\n')
    client.send('Content-Type: application/x-www-form-urlencoded\r\n\r\n')
    const before = performance.now()
    t.match((await client.head()).line, / 429 /, left)
    t.ok(performance.now() - before < 4000, 'without waiting for the body')
  }
  t.equal(await ask('1', 'c'), 429)
  t.equal(await ask('2', 'c'), 200, 'the refused request was not charged for its address')
  t.equal(await ask('3', 'c'), 429, 'and the rule that reads the body still refuses')
  t.equal(await ask('3', 'd'), 200)
  t.equal(await ask('3', 'e'), 200, 'whose refusals charge no other rule')
  t.equal(await ask('3', 'f'), 429)
})

t.test('a charge for a refusal that is none any more is given back', async t => {
  const question = { rule: metered('m', 1), route: '/r', key: 'k', demand: { kind: 'meter' }, group: 0 }
  const answer = (granted: boolean) =>
    ({ granted, unavailable: false, store: 'redis', counts: [] }) as unknown as Answer
  const calls: string[] = []
  const store: Partial<CounterStore> = {
    peek: async () => [answer(false)],
    take: async () => [answer(true)],
    giveBack: (asks: readonly Ask[]) => calls.push(`gave back ${asks.map(({ key }) => key)}`),
  }
  const decider = new Decider({
    questions: { of: () => question } as unknown as Questions,
    store: store as CounterStore,
    now: () => 0,
    onSlots() {},
    onLost() {},
  })
  const request = { facts: { id: 'request' }, matched: [question] } as never
  t.equal(await decider.refuseUnread(request), undefined)
  t.same(calls, ['gave back k'])
})
