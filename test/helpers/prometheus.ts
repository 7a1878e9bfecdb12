/** A real Prometheus that scrapes a gateway with its key and evaluates the rules of deploy/. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { stringify } from 'yaml'
import { findCommand, startServer } from './child-server.js'
import { send } from './http.js'
import { reportMissing } from './missing.js'

export interface Prometheus {
  /**
   * The current values of an instant query, one per series. @throws {Error} with Prometheus' message about a wrong
   * query
   */
  query(expr: string): Promise<number[]>
}

/**
 * Starts Prometheus on the admin ports at `adminUrls`; undefined after reporting the test as skipped (a failure in CI).
 */
export async function prometheusOf(
  t: Test,
  adminUrls: readonly string[],
  key: string,
  rules: string,
): Promise<Prometheus | undefined> {
  const command = findCommand(['prometheus'])
  if (command === undefined) {
    reportMissing(t, 'prometheus', 'install it with `npm run services` or your package manager')
    return undefined
  }
  const server = await startServer({
    command,
    args(port, folder) {
      const file = join(folder, 'prometheus.yml')
      writeFileSync(
        file,
        stringify(
          config(
            adminUrls.map(url => new URL(url).host),
            key,
            rules,
          ),
        ),
      )
      return [
        `--config.file=${file}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=warn',
      ]
    },
    answers: async port => (await send(`http://127.0.0.1:${port}/-/ready`)).status === 200,
  })
  t.teardown(() => server.stop())
  return {
    async query(expr) {
      const url = `http://127.0.0.1:${server.port}/api/v1/query?query=${encodeURIComponent(expr)}`
      const { data, error } = (await send(url)).json<Answer>()
      if (data === undefined) throw new Error(`${error}: ${expr}`)
      const values = data.resultType === 'scalar' ? [data.result] : data.result.map(({ value }) => value)
      return values.map(([, text]) => Number(text))
    },
  }
}

type Sample = readonly [number, string]
interface Answer {
  readonly error?: string
  readonly data?:
    | { readonly resultType: 'scalar'; readonly result: Sample }
    | { readonly resultType: 'vector'; readonly result: readonly { readonly value: Sample }[] }
}

function config(targets: readonly string[], key: string, rules: string): object {
  return {
    global: { scrape_interval: '500ms', scrape_timeout: '500ms', evaluation_interval: '500ms' },
    rule_files: [rules],
    scrape_configs: [
      {
        job_name: 'sluice',
        authorization: { credentials: key },
        static_configs: [{ targets }],
      },
    ],
  }
}
