/** What the commands' readers of logs and other gateways' files cost at most, each with the largest line or a large file. */
import t from 'tap'
import { parseYaml } from '../../config/yaml.js'
import { defaultsAmong } from '../../tools/import/nginx-servers.js'
import { parseNginx } from '../../tools/import/nginx-text.js'
import { fitsOf } from '../../tools/import/traefik-rule.js'
import { withoutSecret } from '../../tools/import/upstreams.js'
import { decisionReader } from '../../tools/log/decision-record.js'
import { combined, envoy } from '../../tools/replay/access-logs.js'
import { hostileTexts, slowInputs } from '../helpers/hostile.js'

/** A longer line of a log is skipped. */
const LINE = 1024 * 1024
/** For 1 MiB. */
const LINEAR_MS = 500
/** A part of the largest file, in which a quadratic reader is well above its time. */
const FILE = 256 * 1024
/** The package `yaml` takes 1 to 2 ms for a KiB of errors, on a busy machine more. */
const YAML_MS = 3500
const plain = (scalar: string) => ({ value: scalar })

t.test('a line of a log of any characters costs what its bytes cost', async t => {
  const address = '192.0.2.1 - - [10/Oct/2026:13:55:36 +0000] "GET /'
  const texts = hostileTexts(LINE, {
    starts: ['', address, '{"time":"', '{"start_time":"2026-10-10T00:00:00Z","method":"GET","path":"/'],
    ends: ['', '" 200 1', '"}'],
    units: [' ', '"', '\\', '\\"', 'a', 'a ', '/', '/..', '%41', '?', '{', '{"a":', '[', '1'],
  })
  const dropped = new Map<string, number>()
  const formats = { combined: combined('a').read, envoy: envoy('a').read, records: decisionReader(dropped) }
  for (const [name, read] of Object.entries(formats))
    t.same(await slowInputs(texts, read, LINEAR_MS), [], name)
})

t.test('the words and rules of other gateways cost what their bytes cost', async t => {
  const texts = hostileTexts(FILE, {
    starts: ['', 'Path(`a`', 'https://'],
    more: ['`a`', 'Path(`a`)', '&&', '||', 'a{', 'a;', '//', 'http://', '-----'],
  })
  const nginx = (text: string) => parseNginx(text)
  for (const [name, read] of Object.entries({ fitsOf, nginx, withoutSecret }))
    t.same(await slowInputs(texts, read, LINEAR_MS), [], name)
})

t.test('the default server of each address is found in one pass over the servers', t => {
  const text = Array.from({ length: 4000 }, (_, i) => `server { listen 80; server_name h${i}; }`).join('\n')
  const servers = parseNginx(`${text} server { listen 81; listen 80 default_server; }`).map(
    ({ block = [] }) => block,
  )
  const start = performance.now()
  const found = defaultsAmong(servers)
  // Looking at all servers for each of them took 5 s and more.
  t.ok(performance.now() - start < LINEAR_MS)
  t.strictSame([...found], [servers.at(-1)])
  t.end()
})

t.test('a YAML file costs what its bytes cost, however many errors its lines have', async t => {
  const texts = hostileTexts(FILE, {
    starts: ['', 'a: ', 'a: ['],
    ends: [''],
    units: [
      '""',
      "''",
      '&a ',
      '!!a ',
      '- a\n',
      'a: b\n',
      '[',
      '{',
      '? ',
      '---\n',
      '%a\n',
      '#\n',
      '|\n',
      'a,',
    ],
  })
  // A quadratic reader took 5 s and more for some of these.
  t.same(await slowInputs(texts, text => parseYaml(text, plain), YAML_MS), [])
})

t.test('hundreds of thousands of aliases are refused at once, where the first too many stands', t => {
  const text = `b: &a 1\na:\n${'- *a\n'.repeat(200_000)}`
  const [fault, ...others] = parseYaml(text, plain).faults
  t.match(fault, { line: 103, col: 3, message: /^More than 100 aliases, .* Write them out\.$/ })
  t.same(others, [])
  return slowInputs([text], input => parseYaml(input, plain), 50).then(slow => t.same(slow, []))
})
