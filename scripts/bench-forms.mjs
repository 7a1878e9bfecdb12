/**
 * `node scripts/bench-forms.mjs` (after `npm run build`): how long a form takes as it grows to its limits. Each row
 * doubles towards the limit of docs/forms.md, rule 14; linear growth is a steady last column, and the last row is the
 * most a single request can cost.
 */
import { compileSchema, parseForm } from '../dist/services/identity/index.js'

const FORM = 'application/x-www-form-urlencoded'
const JSON_TYPE = 'application/json'
const MEBIBYTE = 1024 * 1024
const SHARES = [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1]
const RUNS = 9

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

const repeated = (count, make) => Array.from({ length: count }, (_, at) => make(at)).join('&')
const parts = (count, make) =>
  `${Array.from({ length: count }, (_, at) => {
    const [name, value] = make(at)
    return `--XX\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  }).join('')}--XX--\r\n`
const filled = (prefix, bytes, filler, suffix = '') =>
  prefix + filler.repeat((bytes - prefix.length - suffix.length) / filler.length) + suffix

/** What grows, up to which limit, and a body of a given size. */
const CASES = [
  ['bytes of one text', MEBIBYTE, FORM, size => filled('traits.name=', size, 'x')],
  ['bytes of percent signs', MEBIBYTE, FORM, size => filled('traits.name=', size, '%C3%BC')],
  ['bytes against a hostile pattern', MEBIBYTE, FORM, size => filled('traits.evil=', size, 'a', 'b')],
  ['bytes of a hostile e-mail address', MEBIBYTE, FORM, size => filled('traits.mail=', size, 'a.')],
  ['bytes of a name nobody knows', MEBIBYTE, FORM, size => filled('traits.', size, 'a.')],
  [
    'bytes of JSON',
    MEBIBYTE,
    JSON_TYPE,
    size => filled('{"traits":{"free":{"a":[', size, '{"b":1},', '0]}}}'),
  ],
  ['bytes of JSON, every item wrong', MEBIBYTE, JSON_TYPE, size => filled('{"x":[', size, '[],', '0]}')],
  [
    'bytes of JSON text in a field',
    MEBIBYTE,
    FORM,
    size => filled('traits.free={"a":[', size, '[1],', '0]}'),
  ],
  [
    'bytes of a broken multipart body',
    MEBIBYTE,
    'multipart/form-data; boundary=XX',
    size => filled('', size, '--X\r\n'),
  ],
  ['entries of one name', 5000, FORM, size => repeated(size, () => 'traits.flag=false')],
  ['entries nobody knows', 5000, FORM, size => repeated(size, () => 'x=y')],
  [
    'parts of a multipart body',
    5000,
    'multipart/form-data; boundary=XX',
    size => parts(size, () => ['traits.flag', 'true']),
  ],
  ['different names', 1000, FORM, size => repeated(size, at => `traits.${names[at]}=${at}`)],
  ['wrong values', 1000, FORM, size => repeated(size, at => `traits.${names[at]}=x`)],
  ['items of a list', 1000, FORM, size => repeated(size, () => 'traits.tags=x')],
  ['rows of a list', 500, FORM, size => repeated(size, at => `traits.rows.${at}.a=x&traits.rows.${at}.b=1`)],
  ['names 60 deep', 1000, FORM, size => repeated(size, at => `traits.${'deep.'}${'d.'.repeat(58)}v${at}=x`)],
]

console.log('| What grows | Size | ms | µs for each |\n| --- | ---: | ---: | ---: |')
for (const [what, limit, contentType, make] of CASES) {
  for (const share of SHARES) {
    const size = Math.floor(limit * share)
    const body = Buffer.from(make(size))
    const milliseconds = await median(() => parseForm(schema, { contentType, body }))
    console.log(
      `| ${what} | ${size} | ${milliseconds.toFixed(2)} | ${((milliseconds * 1000) / size).toFixed(3)} |`,
    )
  }
}
console.log(`\nmost memory in use: ${Math.round(process.resourceUsage().maxRSS / 1024)} MiB`)

async function median(work) {
  const times = []
  for (let run = 0; run < RUNS; run++) {
    const start = performance.now()
    await work()
    times.push(performance.now() - start)
  }
  return times.sort((a, b) => a - b)[Math.floor(RUNS / 2)]
}
