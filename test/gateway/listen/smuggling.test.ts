/**
 * Hostile bytes against a real gateway in front of a strict upstream: the gateway, the upstream and every client must
 * count the same requests. `MESSAGES=20000 SEED=7 node dist/test/gateway/listen/smuggling.test.js` for a long run.
 */
import t, { type Test } from 'tap'
import { testGateway } from '../../helpers/gateway.js'
import { send } from '../../helpers/http.js'
import { type Played, play, type SeenAnswer } from './smuggling/connection.js'
import { type Attack, attacks } from './smuggling/hostile.js'
import { type StrictUpstream, strictUpstream } from './smuggling/strict-upstream.js'

const MESSAGES = Number(process.env.MESSAGES ?? 1000)
const SEED = Number(process.env.SEED ?? 1)
const AT_ONCE = 48

/** How the gateway itself may answer bytes that it does not accept; 204 is its own response to `OPTIONS *`. */
const REFUSALS = [400, 405, 408, 413, 414, 417, 421, 431, 501]
const TELLS = /127\.0\.0\.1|localhost|node:|\bat |Error:|ECONN|HPE_|UND_ERR|redis/i

t.setTimeout(30_000 + MESSAGES * 5)

interface Result extends Played {
  readonly number: number
  readonly attack: Attack
}

/** Plays the attacks of a seed, some at a time, each on its own connection. */
async function playAll(port: number, count: number): Promise<Result[]> {
  const results: Result[] = []
  const source = attacks(SEED)
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) {
      const number = next++
      const attack = source.next().value
      results.push({ number, attack, ...(await play(port, attack)) })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return results
}

/** What is wrong with one response, or undefined. */
function faultOf(answer: SeenAnswer, { attack }: Result, upstream: StrictUpstream): string | undefined {
  const { status, saw, requestId, contentType, body, whole } = answer
  if (!whole) return 'a response cut short'
  if (saw === undefined) {
    if (status === 204) return undefined
    if (!REFUSALS.includes(status)) return `answered ${status} ${body}`
    if (contentType !== 'application/problem+json') return `${status} is not problem+json`
    return TELLS.test(body) ? `the refusal reveals ${body}` : undefined
  }
  const seen = upstream.seen.get(requestId ?? '')
  if (seen?.id !== saw || !seen.whole) return `a response to ${saw} that the upstream did not give`
  return attack.bytes.includes(saw) ? undefined : `the response to ${saw}, which another client sent`
}

/**
 * Whether the exchange was cut: by the gateway, because of an upgrade or CONNECT behind an unanswered request; or by
 * the client, which gave up waiting.
 */
function wasCut({ attack, answers, gaveUp }: Result): boolean {
  return gaveUp || (/Upgrade:|CONNECT /.test(attack.bytes) && answers.length === 0)
}

function report(t: Test, what: string, found: readonly (readonly [Result, string])[]): void {
  t.equal(found.length, 0, what)
  for (const [{ number, attack }, fault] of found.slice(0, 5)) {
    t.comment(`${number} (${attack.kind}): ${fault}\n${JSON.stringify(attack.bytes.slice(0, 600))}`)
  }
}

t.test(
  `${MESSAGES} hostile connections, seed ${SEED}: gateway, upstream and clients count the same requests`,
  async t => {
    const upstream = await strictUpstream()
    t.teardown(() => upstream.stop())
    const gateway = await testGateway(t, {
      upstream: upstream.url,
      timeouts: '{ connect: 5s, head: 20s, idle: 20s }',
    })
    const results = await playAll(Number(new URL(gateway.url).port), MESSAGES)

    t.same(upstream.faults.slice(0, 5), [], 'the upstream sees only valid requests, one after the other')
    report(t, 'every connection ends', results.flatMap(one => (one.hung ? [[one, 'hung']] : [])) as never)
    report(
      t,
      'clients read nothing but responses',
      results.flatMap(one =>
        one.garbage === '' ? [] : [[one, JSON.stringify(one.garbage.slice(0, 300))] as const],
      ),
    )
    report(
      t,
      'every response is the client’s own, or a refusal that reveals nothing',
      results.flatMap(one =>
        one.answers.flatMap(answer => {
          const fault = faultOf(answer, one, upstream)
          return fault === undefined ? [] : [[one, fault] as const]
        }),
      ),
    )

    const delivered = results.flatMap(({ answers }) => answers.flatMap(({ requestId }) => requestId ?? []))
    t.equal(new Set(delivered).size, delivered.length, 'no response comes twice')
    const whole = [...upstream.seen.values()].filter(one => one.whole)
    const arrived = new Set(delivered)
    report(
      t,
      'a response the upstream gave is missing only where the connection was cut',
      whole.flatMap(({ id, requestId }) => {
        const sender = arrived.has(requestId)
          ? undefined
          : results.find(({ attack }) => attack.bytes.includes(id))
        return sender === undefined || wasCut(sender) ? [] : [[sender, id] as const]
      }),
    )
    const { body } = await send(`${gateway.adminUrl}/metrics`)
    const counts = [...body.matchAll(/^sluice_requests_total\{upstream="app",.*code="200".*\} (\d+)$/gm)]
    const read = counts.reduce((sum, [, count]) => sum + Number(count), 0)
    t.equal(read, delivered.length, 'the gateway counts the same responses as its clients')

    const refused = results.flatMap(({ answers }) => answers.filter(({ saw }) => saw === undefined)).length
    const waiting = results.filter(({ gaveUp }) => gaveUp).length
    t.ok(
      refused > MESSAGES / 4 && delivered.length > MESSAGES / 4,
      'the attacks mix requests that are accepted and refused',
    )
    t.comment(
      `${upstream.seen.size} requests begun upstream, ${delivered.length} answered, ${refused} refused, ${waiting} cut short`,
    )
  },
)
