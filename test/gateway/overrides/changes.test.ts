/** `sluice diff --live`: what overrides of every kind change of what the files say. */
import t from 'tap'
import { sluice } from '../../helpers/command.js'
import { send } from '../../helpers/http.js'
import { POLICIES, start } from './negotiating.js'

const FLOOD = `version: 1
kind: volumetric
rules: [{ id: flood, match: [/**], key: [client-ip], quota: { requests: 100, per: 60s } }]
`

t.test(
  'modes, access entries and negotiated limits are shown by their effect until they are undone',
  async t => {
    const { adminUrl, put, undo } = await start(t, '', { policies: { ...POLICIES, 'flood.yaml': FLOOD } })
    const diff = () => sluice(['diff', '--live', adminUrl])
    t.match(await diff(), { code: 0, out: 'Nothing differs in effect: no override is in force.\n' })
    await put('acme', 'all', { burst: 7, sustained: 70 })
    const body = (more: object) => ({
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ why: 'a test', ...more }),
    })
    const expected = [
      [`/access/office`, { networks: ['198.51.100.0/24'], action: 'exempt' }],
      ['/rules/flood/mode', { mode: 'report-only' }],
      ['/rules/export/mode', { mode: 'report-only' }],
    ] as const
    for (const [path, more] of expected) t.ok((await send(adminUrl + path, body(more))).status < 300, path)
    const { code, out } = await diff()
    t.equal(code, 1)
    t.equal(
      out,
      `Modes
  ~ flood: mode enforce → report-only. It has other counters meanwhile
  ~ export: mode enforce → report-only. It has other counters meanwhile
Access
  + office: action exempt, mode enforce, networks 198.51.100.0/24
Projects
  ~ acme: all: 3 → 70 per minute, 7 per second. New counters: burst
`,
    )
    t.match(JSON.parse((await sluice(['diff', '--live', adminUrl, '--json'])).out), {
      changes: { length: Number },
    })
    await undo('acme', 'all')
    t.notMatch((await diff()).out, /acme/)
    t.match(await sluice(['diff', '--live', adminUrl, 'a', 'b']), { code: 2, err: /takes no OLD and NEW/ })
    t.match(await sluice(['diff', 'a']), { code: 2, err: /needs OLD and NEW, or --live/ })
  },
)
