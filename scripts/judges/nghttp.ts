/** nghttp, which speaks HTTP/2 alone: many requests at a time on one connection, uploads, trailers. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { HTTP2_WIRES } from '../../config/words/words.js'
import { finish } from '../../test/helpers/launch.js'
import { scoped } from '../../test/helpers/scope.js'
import { needs } from './install.js'
import { folderIn, type Judge, startGateway } from './judge.js'
import { BIG_BYTES, startUpstream } from './upstream.js'

const MOST_S = 30
const AT_ONCE = 50

export const judgeNghttp: Judge = async (_, place) => {
  needs('nghttp', 'nghttp is not here: apt-get install nghttp2-client')
  const folder = folderIn(place, 'nghttp')
  const sent = join(folder, 'sent')
  writeFileSync(sent, 'x'.repeat(BIG_BYTES))
  const [rows, faults]: [string[][], string[]] = [[], []]
  for (const http2 of HTTP2_WIRES) {
    const label = `nghttp, TLS, \`http2: ${http2}\``
    const found = await scoped(async t => {
      const { port } = await startGateway(t, place, await startUpstream(t), { tls: true, http2 })
      const base = `https://127.0.0.1:${port}`
      const nghttp = async (...args: string[]) => (await finish('nghttp', args, { seconds: MOST_S })).stdout
      const urls = Array.from({ length: AT_ONCE }, (_, i) => [`${base}/chunked?${i}`, `${base}/big?${i}`])
      const many = await nghttp('-ns', ...urls.flat())
      const statuses = many.match(/^ *\d+ .* 200 .*$/gm) ?? []
      const upload = await nghttp('-d', sent, '--trailer', 'x-sum: 42', `${base}/echo`)
      const behind = await nghttp('-v', '-H', 'te: trailers', `${base}/trailers`)
      return [
        statuses.length === 2 * AT_ONCE ? [] : [`${statuses.length} of ${2 * AT_ONCE} requests got 200`],
        upload.includes(`${BIG_BYTES}`) ? [] : [`an upload was echoed as ${upload.slice(0, 200)}`],
        /x-sum: 42/.test(behind) ? [] : ['the trailers of a response are missing'],
      ].flat()
    })
    const verdict = found.length === 0 ? 'as they should' : `${found.length} faults`
    rows.push([label, `${2 * AT_ONCE + 2} requests`, '', `${found.length} failed`, verdict])
    faults.push(...found.map(text => `${label}: ${text}`))
  }
  return { rows, faults }
}
