/** Random bodies: whatever is sent, there is a response and nothing else changes. Longer runs: FUZZ_RUNS=100000. */
import t from 'tap'
import { readForm } from '../../../../services/identity/decode/parse.js'
import { type CompiledSchema, compileSchema } from '../../../../services/identity/index.js'
import { sentEntries } from '../../../../services/identity/render/sent.js'
import { projectFile } from '../../../helpers/root.js'
import { rendered } from '../render/rendered.js'
import { traitsSchema, URL_ENCODED } from '../submit.js'

const RUNS = Number(process.env.FUZZ_RUNS ?? 2000)
const SEED = Number(process.env.FUZZ_SEED ?? 7)
/** Part of every value that is sent; no message may repeat it. */
const MARK = 'Zq7'

const text = { type: 'string' }
const node = {
  type: 'object',
  required: ['name'],
  properties: {
    name: { ...text, pattern: '^(a+)+$' },
    next: { $ref: '#/definitions/node' },
    all: { type: 'array', items: { $ref: '#/definitions/node' } },
  },
}
const wide = traitsSchema(
  {
    name: { ...text, format: 'email' },
    age: { type: 'integer', multipleOf: 3 },
    news: { type: 'boolean' },
    any: { type: ['string', 'number', 'boolean', 'null'] },
    size: { enum: [1, 'x', null, [2], ''] },
    tags: { type: 'array', items: text, uniqueItems: true },
    pair: { type: 'array', items: [{ type: 'integer' }, { type: 'boolean' }], additionalItems: false },
    free: { type: 'object' },
    node: { $ref: '#/definitions/node' },
    constructor: text,
    'a.b': text,
  },
  { additionalProperties: { type: 'integer' }, not: { required: ['age', 'news'] } },
  { definitions: { node } },
)
const schemas: CompiledSchema[] = [
  wide,
  compileSchema(JSON.parse(projectFile('config', 'identity.schema.json'))),
]

/** Mulberry32: the same numbers for the same seed, on every machine. */
function random(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

const below = random(SEED)
const pick = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item
const some = <Item>(most: number, make: () => Item): Item[] => Array.from({ length: below(most + 1) }, make)

const SEGMENTS =
  'traits name age news any size tags pair free node next all constructor a b a.b email first __proto__ prototype toString valueOf 0 1 2 9 01 -1 1e3 999999999999999 9999999999999999'.split(
    ' ',
  )
const VALUES =
  ' |true|false|on|29|29.0|1e400|-0|0x10|9007199254740993|null|[|[1,2]|["x"]|{}|{"__proto__":{"x":1}}|{"name":"aaa"}|{"a":{"a":{}}}|aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!|a@b.c|\u0000|%zz|%|+|&|=|<script>|"'.split(
    '|',
  )

const anyName = () =>
  `${below(5) ? 'traits.' : ''}${some(below(20) ? 4 : 80, () => pick(SEGMENTS)).join('.')}`
const anyValue = () => (below(3) ? pick(VALUES) : `${MARK}${pick(VALUES)}`.repeat(below(50) ? 1 : 200))

function urlEncoded(): string {
  const written = below(4) ? encodeLoosely : (given: string) => given
  return some(30, () => `${written(anyName())}=${written(anyValue())}`).join(pick(['&', '&', '&&', ';']))
}

function encodeLoosely(given: string): string {
  return encodeURIComponent(given).replaceAll('%2E', pick(['.', '%2e']))
}

function multipartBody(): string {
  const parts = some(12, () => {
    const file = below(6) ? '' : `; filename="${anyValue()}"`
    const type = below(4) ? '' : `\r\nContent-Type: ${pick(['text/plain; charset=x', 'image/png', ''])}`
    return `--XX\r\nContent-Disposition: form-data; name="${anyName()}"${file}${type}\r\n\r\n${anyValue()}\r\n`
  })
  return `${parts.join('')}--XX--\r\n`
}

function json(depth = 0): unknown {
  if (depth > 4 || below(3) === 0) return pick<unknown>([anyValue(), below(100), -1.5, 1e300, true, null])
  if (below(3) === 0) return some(5, () => json(depth + 1))
  return Object.fromEntries(
    some(6, () => [depth ? pick(SEGMENTS) : pick(['traits', anyName()]), json(depth + 1)]),
  )
}

/** Cuts, doubles or scrambles some bytes. */
function damaged(body: Buffer): Buffer {
  const at = below(body.length + 1)
  switch (below(4)) {
    case 0:
      return body.subarray(0, at)
    case 1:
      return Buffer.concat([body, body.subarray(at)])
    case 2:
      return Buffer.from(body.map(byte => (below(20) ? byte : below(256))))
    default:
      return body
  }
}

function body(): { contentType: string; body: Buffer } {
  const contentType = pick([
    URL_ENCODED,
    'multipart/form-data; boundary=XX',
    'application/json',
    pick(['multipart/form-data; boundary=', 'multipart/form-data', 'text/plain', '']),
  ])
  const made = contentType.includes('json')
    ? JSON.stringify(json())
    : contentType.includes('multi')
      ? multipartBody()
      : urlEncoded()
  return { contentType, body: damaged(Buffer.from(made)) }
}

t.test(
  `each of ${RUNS} random bodies (seed ${SEED}) gives traits or errors, and never an exception`,
  async t => {
    t.setTimeout(30_000 + RUNS)
    const prototype = Object.getOwnPropertyNames(Object.prototype).join()
    let accepted = 0
    let slowest = 0
    for (let run = 0; run < RUNS; run++) {
      const schema = pick(schemas)
      const sent = body()
      const start = performance.now()
      const { result, entries } = await readForm(schema, sent)
      const errors = 'errors' in result ? result.errors : []
      if (run % 20 === 0) rendered(schema, sentEntries(schema.root, entries), errors)
      slowest = Math.max(slowest, performance.now() - start)
      if ('traits' in result) accepted++
      const fine =
        'traits' in result
          ? schema.validate({ traits: result.traits }).length === 0
          : errors.length > 0 && errors.every(({ code, message }) => code !== '' && /\.$/.test(message))
      if (!fine || JSON.stringify(errors).includes(MARK)) {
        t.fail(`run ${run}: ${sent.contentType} ${JSON.stringify(sent.body.toString('latin1'))}`, { result })
        return
      }
    }
    t.equal(Object.getOwnPropertyNames(Object.prototype).join(), prototype)
    t.ok(accepted > RUNS / 20 && accepted < RUNS, `${accepted} of ${RUNS} were accepted`)
    t.ok(slowest < 2000, `the slowest took ${Math.round(slowest)} ms`)
  },
)
