/** h2spec in strict mode against the gateway's TLS port and a bare node:http2 server: no additional case may fail. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createSecureServer } from 'node:http2'
import { join } from 'node:path'
import { startGateway } from './gateway.mjs'
import { h2spec } from './install.mjs'
import { finish } from './processes.mjs'

/** 147 cases; those that wait for silence take the time-out below. */
const SECONDS = 240
const CASE_TIMEOUT_S = '3'

/** Both servers send this response once the request is complete. */
function answer(req, res) {
  req.on('error', () => undefined).resume()
  res.on('error', () => undefined)
  req.on('end', () => res.end('done'))
}

/** @returns what the judge found: a row for the table, and a sentence for each difference */
export async function judgeH2spec(folder) {
  const program = await h2spec()
  const upstream = createServer(answer).listen(0, '127.0.0.1')
  const bare = createSecureServer({ cert: folder.cert, key: folder.key }, answer)
    .on('sessionError', () => undefined)
    .listen(0, '127.0.0.1')
  await Promise.all([once(upstream, 'listening'), once(bare, 'listening')])
  const gateway = await startGateway(folder, `http://127.0.0.1:${upstream.address().port}`, { tls: true })
  try {
    // One after the other: cases that wait for silence would disturb each other on a busy machine.
    const direct = await run(program, folder, bare.address().port)
    const through = await run(program, folder, gateway.port)
    const more = [...through.failed].filter(title => !direct.failed.has(title))
    const fewer = [...direct.failed].filter(title => !through.failed.has(title))
    return {
      row: [
        'h2spec, strict, TLS',
        `${through.cases} cases`,
        `node:http2 alone: ${direct.failed.size} failed`,
        `${through.failed.size} failed`,
        more.length === 0 && through.cases === direct.cases ? 'no case more' : `${more.length} more`,
      ],
      faults: [
        ...more.map(title => `h2spec: ${title}`),
        ...(gateway.isRunning() ? [] : ['h2spec: the gateway ended']),
        ...(through.cases === direct.cases ? [] : ['h2spec: not as many cases were played at both']),
      ],
      notes: [
        ...[...through.failed]
          .filter(title => direct.failed.has(title))
          .map(title => `fails at both: ${title}`),
        ...fewer.map(title => `fails at node:http2 alone: ${title}`),
      ],
    }
  } finally {
    await gateway.stop()
    upstream.close()
    bare.close()
  }
}

async function run(program, folder, port) {
  const report = join(folder.path, `h2spec-${port}.xml`)
  const args = ['--strict', '--tls', '--insecure', '--port', String(port), '--timeout', CASE_TIMEOUT_S]
  const { isCut, stderr } = await finish(program, [...args, '--junit-report', report], { seconds: SECONDS })
  if (isCut) throw new Error(`h2spec took more than ${SECONDS} s`)
  const failed = new Set()
  let cases = 0
  let xml
  try {
    xml = readFileSync(report, 'utf8')
  } catch {
    throw new Error(`h2spec wrote no report: ${stderr}`)
  }
  for (const text of xml.split('<testcase ').slice(1)) {
    cases += 1
    const [element] = text.split('</testcase>', 1)
    if (!/<(failure|error)\b/.test(element)) continue
    const [attributes] = element.split('>', 1)
    const [, section] = /package="([^"]*)"/.exec(attributes) ?? []
    const [, title] = /classname="([^"]*)"/.exec(attributes) ?? []
    failed.add(`${section} ${title}`)
  }
  return { cases, failed }
}
