/** Wrong keys for a service that runs alone, without a gateway that counts them. */
import t from 'tap'
import { apiKey, startService } from '../harness.js'

t.test(
  'a client that tries keys gets 429 in the format of each API, and the right key is still accepted',
  async t => {
    const service = await startService(t, {}, 'secret-of-the-gateway')
    const { id, scim } = await service.directory()
    const manage = (key: string, from?: string) =>
      service.manage('GET', `/${id}`, undefined, {
        authorization: `Api-Key ${key}`,
        ...(from && { 'x-sluice-network': from }),
      })
    for (let i = 0; i < 20; i += 1) t.equal((await manage(`wrong-${i}`)).status, 401)
    const refused = await manage('wrong')
    t.match(refused, {
      status: 429,
      body: { data: null, error: { code: 429, message: /Too many wrong keys/ } },
    })
    t.match(refused.headers.get('retry-after'), /^[1-9]\d?$/)
    t.equal((await manage('wrong', '192.0.2.1')).status, 401, 'another client of the gateway is not limited')
    t.equal((await manage(apiKey)).status, 200)

    const ask = (key: string) => scim('GET', '/Users', undefined, { authorization: key })
    for (let i = 0; i < 20; i += 1) t.equal((await ask(`Bearer wrong-${i}`)).status, 401)
    const late = await ask('Bearer wrong')
    t.match(late, { status: 429, body: { status: '429', detail: /Too many wrong keys/ } })
    t.match(late.headers.get('content-type'), /scim\+json/)
    t.match(late.headers.get('retry-after'), /^[1-9]\d?$/)
    t.equal((await scim('GET', '/Users')).status, 200)
    t.equal(
      service.logged.filter(line => line.startsWith('Too many wrong keys')).length,
      2,
      'each API logs one line',
    )
  },
)

t.test('the host application can count wrong keys itself', async t => {
  const told: string[] = []
  const { start } = await import('../../../../services/directory/index.js')
  const quiet = () => undefined
  const service = await start({
    env: { DATA_DIR: t.testdir(), API_KEYS: apiKey },
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    async wrongKey(area, source, key) {
      told.push(`${area} ${source} ${key}`)
      return 7
    },
  })
  t.teardown(() => service.close())
  const answer = await fetch(`${service.url}/api/v1/dsync?product=x`, {
    headers: { authorization: 'Bearer no' },
  })
  t.equal(answer.status, 429)
  t.equal(answer.headers.get('retry-after'), '7')
  t.same(told, ['management 127.0.0.1  Bearer no'])
})
