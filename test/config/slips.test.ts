/** Typing mistakes in YAML: each is reported in one sentence that says what to write. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sluice } from '../helpers/command.js'

const GATEWAY = `version: 1
listen: { port: 8080 }
upstreams:
  app: { url: "http://127.0.0.1:3000" }
routes:
  - { path: /**, upstream: app }
`

/** What `check` prints about gateway.yaml, without its folder. */
async function told(dir: string, gateway: string, env: NodeJS.ProcessEnv = {}): Promise<string[]> {
  mkdirSync(join(dir, 'policies'), { recursive: true })
  writeFileSync(join(dir, 'gateway.yaml'), gateway)
  writeFileSync(join(dir, 'projects.yaml'), 'version: 1\nprojects: []\n')
  const { err, out } = await sluice(['check', '--config', dir], { env })
  return `${err}${out}`
    .split('\n')
    .flatMap(line => (line.startsWith(`${dir}/`) ? line.slice(dir.length + 1) : []))
}

t.test('each typing mistake is reported in one sentence at its place', async t => {
  const dir = t.testdir()
  for (const [slip, sentence] of [
    [
      GATEWAY.replace('  - { path', '\t- { path').concat('\tdrain: 1s\n'),
      /^gateway.yaml:6:1: Line 6 begins with a tab. Indent with spaces.$/,
    ],
    [
      GATEWAY.replace('8080', `\${PORT}`),
      /^gateway.yaml:2:1: Inside { } and \[ \] write it in quotes: "\${PORT}".$/,
    ],
    [GATEWAY.replace('/**', '*'), /^gateway.yaml:6:1: An asterisk needs quotes: "\*".$/],
    [
      GATEWAY.replace('8080', '"8080"'),
      / listen.port: Must be .*, but it is "8080". Write it without quotes.$/,
    ],
    [
      GATEWAY.replace('8080', '$PORT'),
      / listen.port: Must be .*, but it is "\$PORT". Did you mean "\${PORT}"\?$/,
    ],
    [
      GATEWAY.replace('version: 1', 'version: "1"'),
      / version: Must be 1, but it is "1". Write it without quotes.$/,
    ],
    [
      GATEWAY.replace('http://127', '127'),
      / upstreams.app.url: .* Did you mean "http:\/\/127.0.0.1:3000"\?$/,
    ],
    [
      GATEWAY.replace(':3000', ':3000/api'),
      / upstreams.app.url: .* Did you mean "http:\/\/127.0.0.1:3000"\?$/,
    ],
    [
      `${GATEWAY}trustedProxies: 10.0.0.0/8\n`,
      /Must be a list, but it is "10.0.0.0\/8". Did you mean \["10.0.0.0\/8"\]\?$/,
    ],
    [
      GATEWAY.replace('{ url: "http://127.0.0.1:3000" }', '[a]'),
      / upstreams.app: Must be a map with "url", "urls" or "embedded", but it is a list.$/,
    ],
  ] as const) {
    const lines = await told(dir, slip)
    t.equal(lines.length, 1, lines.join('\n'))
    t.match(lines[0], sentence)
  }
})

t.test('a file with Windows line ends and a byte order mark is accepted', async t => {
  t.matchOnly(await told(t.testdir(), `\ufeff${GATEWAY.replaceAll('\n', '\r\n')}`), [
    /nothing is limited/,
    /1 warning/,
  ])
})

t.test(
  'a wrong value from the environment is reported by the name of its variable and never quoted',
  async t => {
    const dir = t.testdir()
    const gateway = GATEWAY.replace('8080', `"\${PORT:-8080}"`).concat(`redis: "\${REDIS_URL:-}"\n`)
    const lines = await told(dir, gateway, { PORT: 'abc', REDIS_URL: 'redis:hunter2' })
    t.matchOnly(lines, [
      / listen.port: Must be a whole number from 0 to 65535. The environment variable PORT holds something else.$/,
      / redis: Must be .*, or empty. The environment variable REDIS_URL holds something else.$/,
    ])
    t.notMatch(lines.join(), /abc|hunter2/)
    const written = await told(dir, gateway.replace(':-8080', ':-abc'))
    t.matchOnly(written, [/but it is "abc".$/], 'a wrong default is quoted, because it is in the file')
  },
)

t.test('a valid setting that has no effect gets a note', async t => {
  const dir = t.testdir()
  const notes = await told(dir, `${GATEWAY}trustedProxies: [10.0.0.0/8, 10.1.0.0/16, "::1", "::1"]\n`)
  t.matchOnly(notes, [
    /policies: warning: There are no policy files \(\*.yaml\) in this folder: nothing is limited.$/,
    / trustedProxies\[1\]: note: 10.1.0.0\/16 lies in 10.0.0.0\/8, which is trusted anyway/,
    / trustedProxies\[3\]: note: ::1 lies in ::1/,
    /1 warning/,
  ])
})

t.test('a gateway.yml is reported with the name that it needs', async t => {
  const dir = t.testdir({ 'gateway.yml': GATEWAY })
  const { err } = await sluice(['check', '--config', dir])
  t.match(err, 'it does not exist. Rename gateway.yml: only *.yaml is read.')
})
