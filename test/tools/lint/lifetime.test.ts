/** `sluice check` on lifetime windows. */
import t from 'tap'
import { sluice } from '../../helpers/command.js'

const gatewayYaml = (settings: string) =>
  `version: 1\n${settings}\nupstreams: { a: { url: "http://127.0.0.1:1" } }\nroutes: [{ path: /**, upstream: a }]\n`

const ENDS = /per: warning: Without Redis, lifetime windows last as long as the process/
const ANYBODY =
  /unknownProject: warning: Each unknown caller has "all\.prepaid" of its own, which is kept for ever/

t.test(
  'lifetime windows that cannot keep their promise, or of which anybody has one, are warned of',
  async t => {
    const checked = async (settings: string, requests = 5): Promise<string> => {
      const config = t.testdir({
        'gateway.yaml': gatewayYaml(settings),
        'projects.yaml': 'version: 1\nprojects: []\n',
        policies: {
          'limits.yaml': `version: 1
kind: project-limits
buckets: { all: ["*"] }
limits: [{ for: [{}], quotas: { all: { sustained: 5, windows: [{ name: prepaid, requests: ${requests}, per: lifetime }] } } }]
`,
        },
      })
      return (await sluice(['check', '--config', config])).out.replace(/\s+/g, ' ')
    }
    const plain = await checked('unknownProject: developer')
    t.match(plain, ENDS)
    t.match(plain, ANYBODY)
    t.notMatch(plain, /can never refuse anybody/, 'credit may make it as large as it likes')
    const shared = await checked('redis: redis://127.0.0.1:1')
    t.notMatch(shared, ENDS)
    t.match(shared, ANYBODY)
    for (const [settings, requests] of [
      ['unknownProject: reject', 5],
      ['unknownProject: { plan: developer, environment: production, countBy: together }', 5],
      ['unknownProject: developer', 0],
    ] as const)
      t.notMatch(await checked(settings, requests), ANYBODY, settings)
  },
)
