/** The alerts: well-formed, each fired by its unit test, each explained to operators. */
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { parse } from 'yaml'
import { findCommand } from '../helpers/child-server.js'
import { reportMissing } from '../helpers/missing.js'
import { inProject, projectFile } from '../helpers/root.js'

interface Alert {
  readonly alert?: string
  readonly labels?: { readonly severity?: string }
  readonly annotations?: { readonly summary?: string; readonly description?: string }
}

const { groups } = parse(projectFile('deploy', 'prometheus', 'rules.yaml')) as {
  groups: { rules: Alert[] }[]
}
const alerts = groups.flatMap(group => group.rules).filter(({ alert }) => alert !== undefined)

t.test(
  'promtool accepts the rules and the scrape configuration, and the unit tests of the rules pass',
  async t => {
    const promtool = findCommand(['promtool'])
    if (promtool === undefined) {
      return reportMissing(
        t,
        'promtool',
        'install prometheus with `npm run services` or your package manager',
      )
    }
    for (const args of [
      ['check', 'rules', 'rules.yaml'],
      ['test', 'rules', 'rules.test.yaml'],
      // Without the key and the rules, which exist only inside the container.
      ['check', 'config', '--syntax-only', '../compose/prometheus.yml'],
    ]) {
      const cwd = inProject('deploy', 'prometheus')
      const { status, stdout, stderr } = spawnSync(promtool, args, { cwd, encoding: 'utf8' })
      t.equal(status, 0, `${args.join(' ')}: ${stdout}${stderr}`)
    }
  },
)

t.test('every alert has a unit test, a severity, a description and a row in docs/monitoring.md', async t => {
  const tests = projectFile('deploy', 'prometheus', 'rules.test.yaml')
  const listed = projectFile('docs', 'monitoring.md').matchAll(/^\| `(Sluice\w+)`/gm)
  t.same([...listed].map(([, name]) => name).sort(), alerts.map(({ alert }) => alert).sort())
  for (const { alert = '', labels, annotations } of alerts) {
    t.match(tests, new RegExp(`alertname(="|: )${alert}\\b`), `${alert} has a test`)
    t.match(labels?.severity, /^(critical|warning|info)$/, alert)
    t.match(annotations?.summary, /\.$/, alert)
    t.match(annotations?.description, /\.$/, alert)
  }
})
