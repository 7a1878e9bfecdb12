/** The upstream behind the gateways: answers GET at once; other requests take WORK_MS and are counted per project. */
import { startApp } from '../../dist/test/helpers/http.js'
import { WORK_MS } from './settings.mjs'

/** @returns its `url`, and `most`: the most requests it worked on at once, by host */
export async function startWorkingApp(t) {
  const now = new Map()
  const most = new Map()
  const add = (host, one) => {
    now.set(host, (now.get(host) ?? 0) + one)
    most.set(host, Math.max(most.get(host) ?? 0, now.get(host)))
  }
  const url = await startApp(t, (req, res) => {
    if (req.method === 'GET') return void res.end('done')
    const { host } = req.headers
    add(host, 1)
    res.on('close', () => add(host, -1))
    req.resume()
    setTimeout(() => res.end('done'), WORK_MS)
  })
  return { url, most }
}
