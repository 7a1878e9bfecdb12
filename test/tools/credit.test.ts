/** `sluice credit` against a running gateway. */
import t from 'tap'
import { sluice } from '../helpers/command.js'
import { testGateway } from '../helpers/gateway.js'
import { matchesGolden } from '../helpers/golden.js'
import { send, startApp } from '../helpers/http.js'

const POLICIES = {
  'limits.yaml': `version: 1
kind: project-limits
buckets: { tokens: [/tokens], rest: ["*"] }
limits: [{ for: [{}], quotas: { tokens: { windows: [{ name: prepaid, requests: 10, per: lifetime }] }, rest: { burst: 9 } } }]
`,
}
const KEY = 'canary-0123456789abcdef'

t.test('credit is added, taken back and shown, and impossible credit is a wrong question', async t => {
  const upstream = await startApp(t, (_req, res) => res.end('here'))
  const gateway = await testGateway(t, { upstream, policies: POLICIES, adminKey: KEY })
  const run = (...args: string[]) =>
    sluice([...args, '--live', gateway.adminUrl], { env: { ADMIN_KEY: KEY }, columns: 160 })
  const place = ['credit', 'acme', '--bucket', 'tokens', '--window', 'prepaid', '--by', 'anna']
  const why = ['--why', 'Invoice 7 is paid']
  t.match(await run('credit', 'acme'), {
    code: 0,
    out: /tokens\.prepaid +10 +0 +0 +10\n\nNo credit was added yet\.\n$/,
  })
  t.same(await run(...place, ...why, '--amount', '50000', '--id', 'INV-7'), {
    code: 0,
    out: 'tokens.prepaid of acme: 50,000 added, 50,000 of credit now.\n',
    err: '',
  })
  t.match(await run(...place, ...why, '--amount', '50000', '--id', 'INV-7'), {
    out: /^tokens\.prepaid of acme: 50,000 was added at \S+ already; nothing has changed\.\n$/,
  })
  t.match(await run(...place, ...why, '--amount=-200'), {
    out: 'tokens.prepaid of acme: 200 taken back, 49,800 of credit now.\n',
  })
  await send(`${gateway.url}/tokens`, { headers: { host: 'acme.localhost' } })
  const shown = await run('credit', 'acme')
  t.match(
    shown.out,
    /^window +in all +of it credit +used +left\ntokens\.prepaid +49,810 +49,800 +1 +49,809\n\n/,
  )
  t.match(
    shown.out,
    /tokens\.prepaid +-200 +49,800 +anna +Invoice 7 is paid\n.*tokens\.prepaid +50,000 +50,000 +anna/,
  )
  const { out } = await run('credit', 'acme', '--json')
  matchesGolden(t, out.replace(/"at": "[^"]+"/g, '"at": "TIME"'), 'credit.json')

  t.match(await run('counters', 'acme'), { out: /tokens\.prepaid +enforce +in all +49,810 +1 +49,809\s*\n/ })
  const explain = ['explain', 'GET', '/tokens', '--project', 'acme']
  t.match(await run(...explain), { out: /49,810 in all \(49,800 of it credit\); 2 used, 49,808 left/ })

  const wrong: [readonly string[], RegExp][] = [
    [[...place, '--amount', '5'], /Say why: --why TEXT\./],
    [[...place, ...why], /Say how much: --amount NUMBER\./],
    [['credit', 'acme', ...why, '--amount', '5'], /Say where: --bucket NAME --window NAME\./],
    [
      [...place, ...why, '--amount', '1.5'],
      /--amount must be a whole number of at most 9007199254740991, not "1\.5"/,
    ],
    [[...place, ...why, '--amount', '0'], /The amount is 0/],
    [['credit', 'acm', ...place.slice(2), ...why, '--amount', '5'], /acme/],
  ]
  for (const [args, sentence] of wrong) {
    const answer = await run(...args)
    t.equal(answer.code, 2, args.join(' '))
    t.match(answer.err.replace(/\s+/g, ' '), sentence)
  }
})

t.test('the page and top get a lifetime window without a length and a reset', async t => {
  const upstream = await startApp(t, (_req, res) => res.end('here'))
  const gateway = await testGateway(t, { upstream, policies: POLICIES })
  const live = async () => (await send(`${gateway.adminUrl}/live`)).json<{ closest: object[] }>()
  await live()
  for (let i = 0; i < 9; i += 1) await send(`${gateway.url}/tokens`, { headers: { host: 'acme.localhost' } })
  t.match((await live()).closest, [
    { policy: 'tokens.prepaid', used: 9, quota: 10, window_ms: null, reset_ms: null },
  ])
  const top = await sluice(['top', '--once', '--live', gateway.adminUrl], { columns: 160 })
  t.match(top.out, /tokens\.prepaid.*never/)
})
