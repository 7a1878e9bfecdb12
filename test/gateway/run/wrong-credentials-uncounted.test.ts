/** The supervisor counts wrong credentials; whether one is accepted does not depend on it. */
import t from 'tap'
import { countInTime } from '../../../gateway/run/workers/ask-count.js'
import { send } from '../../helpers/http.js'
import { twoWorkers } from './workers.js'

t.test('a wrong credential is refused while the supervisor stands still', async t => {
  const started = await twoWorkers(t, { apiKeys: 'api-keys.json', identify: [{ plugin: 'api-key' }] })
  if (started === undefined) return
  const { gateway } = started
  const wrong = () => send(gateway.url, { headers: { 'x-api-key': 'a-guess', connection: 'close' } })
  t.equal((await wrong()).status, 401)
  gateway.signal('SIGSTOP')
  const begun = performance.now()
  const answers = await Promise.all([wrong(), wrong(), wrong()])
  const ms = performance.now() - begun
  gateway.signal('SIGCONT')
  t.same(
    answers.map(({ status }) => status),
    [401, 401, 401],
  )
  t.ok(ms < 3000, `after ${ms} ms`)
})

t.test('questions without an answer are bounded, and one that fails counts nothing', async t => {
  const answers: (() => void)[] = []
  const count = countInTime(() => new Promise(resolve => answers.push(() => resolve(7))))
  const first = Array.from({ length: 1500 }, () => count('192.0.2.1', 'a-guess'))
  t.equal(answers.length, 1000)
  t.equal((await Promise.all(first)).filter(wait => wait !== undefined).length, 0)
  for (const answer of answers.splice(0)) answer()
  await new Promise(setImmediate)
  const next = count('192.0.2.1', 'a-guess')
  answers.at(-1)?.()
  t.equal(await next, 7)
  const failing = countInTime(async () => {
    throw new Error('gone')
  })
  t.equal(await failing('192.0.2.1', 'a-guess'), undefined)
})
