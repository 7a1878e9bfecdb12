/**
 * How parsing time grows as forms approach their limits (docs/forms.md, rule 14). Each size is twice the one before, so
 * linear growth doubles the time from column to column; the last column is the most a single request can cost.
 */
import { compileSchema, parseForm } from '../../../services/identity/index.js'
import { cpuMs } from '../../../test/helpers/cpu-time.js'
import { tableFrom } from '../../lib/table.js'
import type { Part } from './part.js'

const FORM = 'application/x-www-form-urlencoded'
const MULTIPART = 'multipart/form-data; boundary=XX'
const JSON_TYPE = 'application/json'
const MEBIBYTE = 1024 * 1024
const SHARES = [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1]
const RUNS = 25

const text = { type: 'string' }
const names = Array.from({ length: 1000 }, (_, at) => `field${at}`)
const schema = compileSchema({
  type: 'object',
  properties: {
    traits: {
      type: 'object',
      properties: {
        name: text,
        evil: { type: 'string', pattern: '^(a|aa|a+)+$' },
        mail: { type: 'string', format: 'email' },
        tags: { type: 'array', items: text },
        rows: { type: 'array', items: { type: 'object', properties: { a: text, b: { type: 'integer' } } } },
        flag: { type: 'boolean' },
        free: { type: 'object' },
        deep: { $ref: '#/definitions/deep' },
        ...Object.fromEntries(names.map(name => [name, { type: 'integer' }])),
      },
    },
  },
  definitions: {
    deep: { type: 'object', properties: { d: { $ref: '#/definitions/deep' }, v: text } },
  },
})

const repeated = (count: number, make: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => make(at)).join('&')
const parts = (count: number, name: string, value: string) =>
  `${`--XX\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`.repeat(count)}--XX--\r\n`
const filled = (prefix: string, bytes: number, filler: string, suffix = '') =>
  prefix + filler.repeat((bytes - prefix.length - suffix.length) / filler.length) + suffix

/** What grows, its limit, the content type, and a function that builds a body of a given size. */
type Case = readonly [what: string, limit: number, contentType: string, make: (size: number) => string]

const CASES: readonly Case[] = [
  ['bytes of one text', MEBIBYTE, FORM, size => filled('traits.name=', size, 'x')],
  ['bytes of percent signs', MEBIBYTE, FORM, size => filled('traits.name=', size, '%C3%BC')],
  ['bytes against a hostile pattern', MEBIBYTE, FORM, size => filled('traits.evil=', size, 'a', 'b')],
  ['bytes of a hostile e-mail address', MEBIBYTE, FORM, size => filled('traits.mail=', size, 'a.')],
  ['bytes of an unknown name', MEBIBYTE, FORM, size => filled('traits.', size, 'a.')],
  [
    'bytes of JSON',
    MEBIBYTE,
    JSON_TYPE,
    size => filled('{"traits":{"free":{"a":[', size, '{"b":1},', '0]}}}'),
  ],
  ['bytes of unknown JSON', MEBIBYTE, JSON_TYPE, size => filled('{"x":[', size, '[],', '0]}')],
  [
    'bytes of JSON text in a field',
    MEBIBYTE,
    FORM,
    size => filled('traits.free={"a":[', size, '[1],', '0]}'),
  ],
  ['bytes of an invalid multipart body', MEBIBYTE, MULTIPART, size => filled('', size, '--X\r\n')],
  ['entries of one name', 5000, FORM, size => repeated(size, () => 'traits.flag=false')],
  ['unknown entries', 5000, FORM, size => repeated(size, () => 'x=y')],
  ['parts of a multipart body', 5000, MULTIPART, size => parts(size, 'traits.flag', 'true')],
  ['different names', 1000, FORM, size => repeated(size, at => `traits.${names[at]}=${at}`)],
  ['wrong values', 1000, FORM, size => repeated(size, at => `traits.${names[at]}=x`)],
  ['items of a list', 1000, FORM, size => repeated(size, () => 'traits.tags=x')],
  ['rows of a list', 500, FORM, size => repeated(size, at => `traits.rows.${at}.a=x&traits.rows.${at}.b=1`)],
  ['names 60 deep', 1000, FORM, size => repeated(size, at => `traits.${'deep.'}${'d.'.repeat(58)}v${at}=x`)],
]

export const forms: Part = async () => {
  const rows = []
  for (const [what, limit, contentType, make] of CASES) {
    const times = []
    for (const share of SHARES) {
      const body = Buffer.from(make(Math.floor(limit * share)))
      times.push(await cost(() => parseForm(schema, { contentType, body })))
    }
    const written = times.map(milliseconds => milliseconds.toFixed(milliseconds < 10 ? 2 : 0))
    const growth = (times.at(-1) ?? 0) / (times[0] ?? 0)
    rows.push([what, String(limit), ...written, growth.toFixed(0)])
  }
  const shares = SHARES.map(share => `1/${1 / share}`)
  const table = tableFrom(['What grows', 'Limit', ...shares, 'growth'], rows)
  const memory = Math.round(process.resourceUsage().maxRSS / 1024)
  return {
    title: 'Forms up to their limits',
    text: `${table}

Milliseconds of processor time. Growth: the limit against a sixteenth of it; linear is 16, or less where a fixed part is large.
Most memory in use: ${memory} MiB`,
    isReached: true,
  }
}

/** Mean processor time of a run in milliseconds, after as many warm-up runs; other load on the machine does not count. */
async function cost(work: () => Promise<unknown>): Promise<number> {
  const runAll = async () => {
    for (let run = 0; run < RUNS; run++) await work()
  }
  await runAll()
  return (await cpuMs(runAll)) / RUNS
}
