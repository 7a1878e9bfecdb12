/** Slots from the first byte to the last: whatever befalls a request, its slot ends once, and in time. */
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mock } from 'node:test'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { Decider } from '../../../gateway/decide/decide.js'
import { slotReports } from '../../../gateway/decide/hold.js'
import { inFlight } from '../../../gateway/decide/in-flight.js'
import { Questions } from '../../../gateway/decide/question.js'
import { SelfCounting } from '../../../gateway/decide/self-counting.js'
import { MemoryStore } from '../../../gateway/decide/store/memory.js'
import { type Answer, type Ask, type CounterStore, uncounted } from '../../../gateway/decide/store/store.js'
import type { Exchange, UpgradeExchange } from '../../../gateway/forward/transport.js'
import { createPipeline, type Rooms } from '../../../gateway/pipeline.js'
import type { Facts, Mode, Rule } from '../../../gateway/types.js'
import { testGateway } from '../../helpers/gateway.js'
import { send } from '../../helpers/http.js'
import { rawClient } from '../../helpers/raw.js'
import { redisUrl } from '../../helpers/redis.js'
import { sleep, waitUntil } from '../../helpers/wait.js'

const HOUR = 3_600_000

class SteeredResponse extends EventEmitter {
  headersSent = false
  destroyed = false
  statusCode = 200

  destroy(): void {
    if (this.destroyed) return
    this.destroyed = true
    this.emit('close')
  }
}

/** One request of the model, steered from outside. */
class Steered {
  readonly res = new SteeredResponse()
  /** Settles the decision while it is waited for. */
  decided: ((counted: boolean) => void) | undefined
  exchange: Exchange | UpgradeExchange | undefined
  /** What the store tells of a lost slot. */
  lost: (() => void)[] = []
  ended = false
}

const STEPS = ['decide', 'be away', 'open', 'answer', 'end', 'fail', 'leave', 'lose', 'hold'] as const
type Step = (typeof STEPS)[number]

function ruleOf(id: string, mode: Mode, max: number, count: 'handshake' | 'lifetime'): Rule {
  return {
    id,
    kind: 'in-flight',
    mode,
    key: ['full-path'],
    missing: 'skip',
    onStoreError: 'local',
    config: { max, slotTtl: 15_000, maxHold: HOUR, count },
    source: { file: 'in-flight.yaml', line: 1 },
  }
}

/** The real path of a request between a scripted listener and a scripted upstream. */
class Model {
  readonly requests: Steered[] = []
  readonly held = new Map<string, number>()
  readonly releases: number[] = []
  readonly warnings: object[] = []
  taken = 0
  readonly #memory = new MemoryStore(() => 0)
  readonly #rules: readonly Rule[]
  readonly #remote: boolean
  #under: Steered | undefined
  #throws = false

  constructor(rules: readonly Rule[], remote: boolean) {
    this.#rules = rules
    this.#remote = remote
  }

  readonly #store: CounterStore = {
    take: asks => {
      const steered = this.#under as Steered
      const answers = () => this.#counted(asks, steered)
      if (!this.#remote) return answers()
      return new Promise(resolve => {
        const before = steered.decided
        steered.decided = counted => {
          before?.(counted)
          resolve(counted ? answers() : asks.map(unavailable))
        }
      })
    },
    peek: asks => this.#memory.peek(asks),
    giveBack: (asks, answers) => this.#memory.giveBack(asks, answers),
    close: async () => {},
  }

  #counted(asks: readonly Ask[], steered: Steered): Answer[] {
    return this.#memory.take(asks).map(answer => {
      const { release } = answer
      if (release === undefined) return answer
      const number = this.taken++
      this.releases[number] = 0
      return {
        ...answer,
        release: () => {
          this.releases[number] = (this.releases[number] as number) + 1
          release()
        },
        onLost: (listener: () => void) => steered.lost.push(listener),
      }
    })
  }

  readonly #log = { debug() {}, info() {}, error() {}, warn: (fields: object) => this.warnings.push(fields) }
  readonly #decider = new Decider({
    questions: new Questions(
      new Map([
        [
          'in-flight',
          inFlight.create({
            log: this.#log,
            projects: [],
            counter: { spend: () => 'unavailable', recall: () => undefined, peek: () => 'unavailable' },
          }),
        ],
      ]),
      Buffer.from('k'),
      this.#log,
    ),
    store: this.#store,
    selfCounting: new SelfCounting(25, this.#log),
    now: () => 0,
    onSlots: slotReports(
      (rule, change) => this.held.set(rule, (this.held.get(rule) ?? 0) + change),
      this.#log,
    ),
    onLost() {},
  })
  readonly #upstream = {
    name: 'app',
    forward: (exchange: Exchange) => this.#begin(exchange),
    upgrade: (exchange: UpgradeExchange) => this.#begin(exchange),
  }
  readonly #pipeline = createPipeline({
    log: this.#log,
    overloaded: () => false,
    snapshot: () => ({
      revision: '',
      identify: () => ({ id: 'acme', plan: 'growth', environment: 'production' }),
      route: () => this.#upstream,
      match: () => this.#rules.map(rule => ({ rule, route: '/a' })),
    }),
    readFacts: () => ({ id: String(this.requests.length), method: 'POST', path: '/a' }) as Facts,
    needsBody: () => false,
    decide: request => this.#decider.decide(request),
    answerFields: () => [],
    rejectionFields: () => [],
    rejectionOf: () => ({ code: 'quota-exceeded', requestId: '' }),
    sendRejection: (_req, res) => res.destroy(),
    finished() {},
    ended() {},
  } satisfies Omit<Rooms, 'peekBody' | 'tapBody'> as unknown as Rooms)

  #begin(exchange: Exchange | UpgradeExchange): void {
    if (this.#throws) throw new Error('forward')
    const steered = this.requests.find(
      ({ res }) => (exchange as Exchange).res === (res as unknown),
    ) as Steered
    steered.exchange = exchange
    if (steered.res.destroyed) this.#end(steered)
  }

  #end(steered: Steered): void {
    if (steered.exchange === undefined || steered.ended) return
    steered.ended = true
    steered.exchange.onUpstreamEnd()
  }

  async begin(how: 'request' | 'upgrade' | 'throw'): Promise<void> {
    const steered = new Steered()
    this.requests.push(steered)
    this.#under = steered
    this.#throws = how === 'throw'
    const res = steered.res as unknown as ServerResponse
    const req = { method: 'POST' } as IncomingMessage
    if (how === 'upgrade') this.#pipeline.upgrade(req, res, new EventEmitter() as never, Buffer.alloc(0))
    else this.#pipeline.request(req, res)
    await settled()
  }

  /** As a transport and a listener may do to a request; what cannot happen now does nothing. */
  async step(steered: Steered, step: Step): Promise<void> {
    const { exchange, res } = steered
    if (step === 'decide' || step === 'be away') {
      steered.decided?.(step === 'decide')
      steered.decided = undefined
    } else if (step === 'leave') {
      res.destroy()
      // A transport ends at once what holds no slot.
      if (exchange !== undefined && !('keepUpstream' in exchange && exchange.keepUpstream)) this.#end(steered)
    } else if (step === 'hold') mock.timers.tick(HOUR)
    else if (step === 'lose') for (const tell of steered.lost.splice(0)) tell()
    else if (exchange !== undefined && !steered.ended) {
      if (step === 'open' && 'onAnswer' in exchange) exchange.onAnswer(101)
      else if (step === 'answer') res.headersSent = true
      else if (step === 'end') this.#end(steered)
      else if (step === 'fail' && !res.headersSent) {
        exchange.fail('upstream-timeout')
        this.#end(steered)
      }
    }
    await settled()
  }

  async endAll(): Promise<void> {
    for (const steered of this.requests) {
      // Rules of different hash slots are asked one after the other.
      while (steered.decided !== undefined) await this.step(steered, 'decide')
      await this.step(steered, 'leave')
      await this.step(steered, 'end')
    }
  }

  get inFlight(): number {
    return [...this.held.values()].reduce((sum, held) => sum + held, 0)
  }
}

function unavailable(ask: Ask): Answer {
  return { granted: false, unavailable: true, store: 'none', counts: uncounted(ask) }
}

const settled = () => new Promise(resolve => setImmediate(resolve))

t.test('however requests end, every slot is given back exactly once', async t => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const script = fc.array(
    fc.oneof(
      { weight: 1, arbitrary: fc.constantFrom('request' as const, 'upgrade' as const, 'throw' as const) },
      { weight: 3, arbitrary: fc.tuple(fc.nat(7), fc.constantFrom(...STEPS)) },
    ),
    { minLength: 4, maxLength: 40 },
  )
  const rules = fc.record({
    max: fc.integer({ min: 1, max: 3 }),
    count: fc.constantFrom('handshake' as const, 'lifetime' as const),
    second: fc.constantFrom('enforce' as const, 'report-only' as const),
    remote: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(rules, script, async ({ max, count, second, remote }, steps) => {
      const model = new Model([ruleOf('a', 'enforce', max, count), ruleOf('b', second, max, count)], remote)
      for (const step of steps) {
        if (typeof step === 'string') await model.begin(step)
        else {
          const steered = model.requests[step[0] % model.requests.length]
          if (steered !== undefined) await model.step(steered, step[1])
        }
        for (const held of model.held.values()) if (held < 0 || held > max) return false
      }
      await model.endAll()
      if (model.inFlight !== 0) return false
      if (model.releases.some(count => count !== 1)) return false
      await model.begin('request')
      await model.endAll()
      return model.taken > 0 && model.inFlight === 0
    }),
    { numRuns: 300 },
  )
})

const KEY = '[project, full-path]'
const policies = (settings: string, more = '') => ({
  'in-flight.yaml': `version: 1
kind: in-flight
rules:
  - { id: work, match: [POST /work/**, GET /work/**], key: ${KEY}, ${settings} }
${more}`,
})

/** An upstream that is told, request by request, how to go on. */
async function startWork(t: Test) {
  const started: { req: IncomingMessage; res: ServerResponse }[] = []
  const server = createServer((req, res) => {
    started.push({ req, res })
  })
  const sockets = new WebSocketServer({ server })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets.clients) socket.terminate()
    server.closeAllConnections()
    server.close()
  })
  return { started, sockets, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const stores: [name: string, settings: (t: Test) => Promise<string | undefined>][] = [
  ['in process', async () => ''],
  [
    'on Redis',
    async t => {
      const url = await redisUrl(t)
      return url && `redis: ${url}\nstore: { deadline: 2s }`
    },
  ],
]

t.jobs = stores.length
for (const [name, settingsOf] of stores) {
  t.test(`slots ${name}`, { buffered: true }, async t => {
    const settings = await settingsOf(t)
    if (settings === undefined) return
    const start = async (t: Test, rule: string, timeouts?: string) => {
      const work = await startWork(t)
      const options = {
        upstream: work.url,
        settings,
        policies: policies(rule),
        ...(timeouts && { timeouts }),
      }
      const gateway = await testGateway(t, options)
      const { port } = new URL(gateway.url)
      const client = async (text: string) => {
        const peer = await rawClient(Number(port))
        t.teardown(() => peer.socket.destroy())
        return peer.send(text)
      }
      /** The status of a request that is let go at once. */
      const knock = async () => {
        const before = work.started.length
        const answer = send(`${gateway.url}/work/1`, { method: 'POST', headers: { host: 'acme.localhost' } })
        const seen = waitUntil('it', () => work.started[before], 1_000).then(
          ({ res }) => res.end(),
          () => {},
        )
        const { status } = await answer
        if (status === 200) await seen
        return status
      }
      const held = async () => {
        const { body } = await send(`${gateway.adminUrl}/metrics`)
        return Number(/^sluice_inflight\{rule="work"\} (\d+)$/m.exec(body)?.[1])
      }
      const freed = () => waitUntil('the slot to be free', async () => (await knock()) === 200)
      return { ...gateway, work, client, knock, held, freed }
    }
    const HEAD = 'POST /work/1 HTTP/1.1\r\nHost: acme.localhost\r\n'

    t.test(
      'a request in flight longer than maxHold gives its slot back, once and with one warning',
      async t => {
        const { client, work, knock, held, lines } = await start(t, 'max: 1, maxHold: 300ms')
        const first = await client(`${HEAD}Content-Length: 0\r\n\r\n`)
        await waitUntil('it', () => work.started.length === 1)
        t.equal(await knock(), 429)
        t.equal(await held(), 1)
        await waitUntil('maxHold', async () => (await held()) === 0)
        t.equal(await knock(), 200)
        work.started[0]?.res.end('late')
        t.equal((await first.message()).body, 'late', 'its own answer is not harmed')
        t.equal(await held(), 0)
        const warnings = lines.filter(({ level, rule }) => level === 'warn' && rule !== undefined)
        t.match(warnings, [{ rule: 'work', msg: /maxHold/ }])
        t.equal(warnings.length, 1)
        t.notMatch(JSON.stringify(warnings), /acme|work\/1/, 'which shows no key')
      },
    )

    t.test('an answer without end, whose client has left, is cut when maxHold is over', async t => {
      const { client, work, knock, held } = await start(t, 'max: 1, maxHold: 400ms')
      const peer = await client(`${HEAD}Content-Length: 0\r\n\r\n`)
      const { res } = await waitUntil('it', () => work.started[0])
      const beat = setInterval(() => res.write('x'), 20)
      t.teardown(() => clearInterval(beat))
      await peer.head()
      peer.reset()
      await sleep(100)
      t.equal(await knock(), 429, 'the upstream is still at work')
      await waitUntil('the cut', () => res.destroyed, 2_000)
      t.equal(await held(), 0)
    })

    t.test(
      'a client that leaves before or during its answer keeps its slot until the upstream is done',
      async t => {
        const { client, work, knock, held, freed } = await start(t, 'max: 1')
        for (const answered of [false, true]) {
          const number = work.started.length
          const peer = await client(`${HEAD}Content-Length: 2\r\n\r\nhi`)
          const { res } = await waitUntil('it', () => work.started[number])
          if (answered) {
            res.write('part')
            await peer.head()
          }
          peer.reset()
          await sleep(50)
          t.equal(await knock(), 429)
          res.end('done')
          await freed()
          t.equal(await held(), 0)
        }
      },
    )

    t.test('whoever stops reading or sending is cut at the idle limit and loses the slot', async t => {
      const { client, work, knock, held, freed } = await start(t, 'max: 1', '{ idle: 400ms }')
      const reader = await client(`${HEAD}Content-Length: 0\r\n\r\n`)
      const { res } = await waitUntil('it', () => work.started[0])
      res.end(Buffer.alloc(64 * 1024 * 1024))
      await reader.head()
      reader.socket.pause()
      t.equal(await knock(), 429)
      await freed()
      reader.socket.resume()
      await waitUntil('the cut', () => reader.ended || reader.closed)

      const sender = await client(`${HEAD}Content-Length: 10\r\n\r\nx`)
      await waitUntil('it', () => work.started.at(-1)?.req.readableLength)
      t.equal(await knock(), 429)
      t.match((await sender.message({ tillClose: true })).line, / 408 /)
      await freed()
      t.equal(await held(), 0)
    })

    t.test('an upstream that fails, is silent or refuses gives the slot back', async t => {
      const { client, work, held, freed } = await start(t, 'max: 1', '{ head: 200ms }')
      const endings: [string, (res: ServerResponse) => void, RegExp][] = [
        ['resets', res => res.socket?.resetAndDestroy(), / 502 /],
        ['is silent', () => {}, / 504 /],
        ['refuses', res => res.writeHead(409, { 'content-length': 0 }).end(), / 409 /],
      ]
      for (const [what, end, line] of endings) {
        const number = work.started.length
        const peer = await client(`${HEAD}Content-Length: 0\r\n\r\n`)
        end((await waitUntil('it', () => work.started[number])).res)
        t.match((await peer.message()).line, line, what)
        await freed()
        t.equal(await held(), 0)
      }
    })

    t.test('WebSockets', async t => {
      const open = async (url: string) => {
        const socket = new WebSocket(`${url.replace('http', 'ws')}/work/1`, {
          headers: { host: 'acme.localhost' },
        })
        socket.on('error', () => {})
        const status = await Promise.race([
          once(socket, 'open').then(() => 101),
          once(socket, 'unexpected-response').then(([, answer]) => answer.statusCode as number),
        ])
        return { socket, status }
      }

      t.test('count: handshake gives the slot back when the tunnel is open', async t => {
        const { url, held } = await start(t, 'max: 1')
        const all = [await open(url), await open(url)]
        t.same(
          all.map(({ status }) => status),
          [101, 101],
        )
        t.equal(await held(), 0)
        for (const { socket } of all) socket.terminate()
      })

      t.test(
        'count: lifetime refuses the next with 429 until the tunnel has closed, however it closes',
        async t => {
          const { url, work, knock, held, freed } = await start(
            t,
            'max: 1, count: lifetime',
            '{ upgradeIdle: 500ms }',
          )
          const closings: [string, (client: WebSocket, upstream: WebSocket) => void][] = [
            ['closed in order', client => client.close()],
            ['closed by the upstream', (_, upstream) => upstream.close()],
            ['reset by the client', client => client.terminate()],
            ['reset by the upstream', (_, upstream) => upstream.terminate()],
            ['silent', () => {}],
          ]
          for (const [what, close] of closings) {
            const { socket, status } = await open(url)
            t.equal(status, 101, what)
            t.equal((await open(url)).status, 429)
            t.equal(await knock(), 429)
            t.equal(await held(), 1)
            const gone = once(socket, 'close')
            const [upstream] = work.sockets.clients
            const goneThere = once(upstream as WebSocket, 'close')
            close(socket, upstream as WebSocket)
            await Promise.all([gone, goneThere])
            await freed()
            t.equal(await held(), 0)
          }
        },
      )

      t.test('a plain GET is a read and takes no slot', async t => {
        const { url, work } = await start(t, 'max: 1, count: lifetime')
        const { socket } = await open(url)
        const answer = send(`${url}/work/1`, { headers: { host: 'acme.localhost' } })
        ;(await waitUntil('it', () => work.started[0])).res.end()
        t.equal((await answer).status, 200)
        socket.terminate()
      })

      t.test('a refused handshake holds its slot until its answer has ended', async t => {
        const { url, work, held } = await start(t, 'max: 1, count: lifetime')
        work.sockets.options.verifyClient = () => false
        t.equal((await open(url)).status, 401)
        await waitUntil('the slot to be free', async () => (await held()) === 0)
      })
    })

    t.test('a report-only rule counts the same, and refuses and delays nobody', async t => {
      const { client, work, knock, held, lines } = await start(t, 'max: 1, mode: report-only')
      const first = await client(`${HEAD}Content-Length: 0\r\n\r\n`)
      await waitUntil('it', () => work.started.length === 1)
      t.equal(await knock(), 200)
      await waitUntil('the record', () => lines.some(line => line.decision === 'would_deny'))
      t.equal(await held(), 1)
      first.reset()
      await waitUntil('the upstream to be cut, for nothing is enforced', () => work.started[0]?.res.destroyed)
      await waitUntil('its slot to be free', async () => (await held()) === 0)
      t.equal(await knock(), 200)
      t.equal(lines.filter(line => line.decision === 'would_deny').length, 1)
    })
  })
}
