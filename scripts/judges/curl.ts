/** curl as one of the clients: a process for each case, with each version of HTTP. */
import { createHash } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { finish } from '../../test/helpers/launch.js'
import { type Case, type Cases, type Results, resultText } from './cases.js'

const CASE_S = 20

/** Plays cases at a base address; `version` is an option such as --http1.0. */
export async function curl(version: string, folder: string, base: string, cases: Cases): Promise<Results> {
  const results: Results = {}
  for (const [name, asked] of Object.entries(cases)) {
    // HTTP/1.0 has no chunked coding, and so no trailers.
    if (version === '--http1.0' && /chunked|trailers/.test(asked.flags ?? '')) continue
    results[name] = await ask(version, folder, base, asked)
  }
  return results
}

/** How many connections curl opens for all cases in one process. */
export async function curlConnections(version: string, base: string, cases: Cases): Promise<number> {
  const urls = Object.values(cases).flatMap(({ path }) => [base + path, '-o', '/dev/null'])
  const args = [version, '-sSk', '-w', '%{num_connects}\n', ...urls]
  const { stdout } = await finish('curl', args, { seconds: CASE_S })
  const counts = stdout.trim().split('\n')
  return counts.reduce((sum, count) => sum + Number(count), 0)
}

async function ask(version: string, folder: string, base: string, asked: Case): Promise<string> {
  const { method, path, upload, flags = '', headers = [] } = asked
  const [heads, body, sent] = [
    join(folder, 'curl-heads'),
    join(folder, 'curl-body'),
    join(folder, 'curl-sent'),
  ]
  writeFileSync(body, '')
  const args = [version, '-sSk', '--max-time', '15', '-D', heads, '-o', body]
  if (method === 'HEAD') args.push('--head')
  else if (method !== 'GET' && upload === undefined) args.push('-X', method)
  if (upload !== undefined) {
    writeFileSync(sent, 'x'.repeat(upload))
    args.push('-X', method, '--data-binary', `@${sent}`)
  }
  for (const line of headers) args.push('-H', line)
  if (flags.includes('chunked')) args.push('-H', 'Transfer-Encoding: chunked')
  if (flags.includes('expect')) args.push('-H', 'Expect: 100-continue')
  if (flags.includes('follow')) args.push('-L')
  const { code, stderr } = await finish('curl', [...args, base + path], { seconds: CASE_S })
  if (code !== 0) return `error: ${stderr.replaceAll(base, '').trim()}`
  return read(heads, method === 'HEAD' ? undefined : body)
}

/**
 * Reads the last head, after redirects and interim responses, and the trailers. For HEAD, curl writes the head as the
 * body.
 */
function read(heads: string, body: string | undefined): string {
  const parts = readFileSync(heads, 'latin1').split('\r\n\r\n').filter(Boolean)
  const last = parts.findLastIndex(part => part.startsWith('HTTP/'))
  const [line = '', ...fields] = parts[last]?.split('\r\n') ?? []
  const trailers = parts.slice(last + 1).flatMap(part => part.split('\r\n'))
  const behind = trailers.filter(Boolean).map(text => `(behind) ${text}`)
  const bytes = body === undefined ? Buffer.alloc(0) : readFileSync(body)
  rmSync(heads)
  const sum = createHash('sha256').update(bytes).digest('hex')
  return resultText(line.split(' ')[1] ?? '', String(bytes.length), sum, [...fields, ...behind])
}
