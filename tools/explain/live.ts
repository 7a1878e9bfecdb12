/** An explanation by the running gateway, with its counters. */
import type { Asked } from '../../gateway/admin/explain.js'
import { Failure } from '../../gateway/errors.js'
import type { Explanation } from '../../gateway/explain/explain.js'
import { adminPort, askAdmin } from '../admin.js'
import { Unusable } from '../command.js'
import type { Io } from '../io.js'
import { printable } from '../text.js'

/** @param where the gateway's admin address, or the configuration that names it */
export async function explainLive(asked: Asked, where: string, io: Io): Promise<Explanation> {
  const port = await adminPort(where, io)
  const url = `${port.origin}/explain`
  const { status, json } = await askAdmin(port, 'POST', '/explain', asked)
  const { detail } = (json ?? {}) as { detail?: unknown }
  if (status === 422 || status === 400) throw new Unusable(printable(String(detail)))
  if (status === 401) throw new Failure('The admin port asks for its key: set ADMIN_KEY in the environment.')
  if (status !== 200 || !isExplanation(json)) {
    const said = typeof detail === 'string' ? `: ${printable(detail)}` : '.'
    throw new Failure(`What answers on ${url} is not a gateway that explains (${status})${said}`)
  }
  return json
}

function isExplanation(json: unknown): json is Explanation {
  const { request, rules, answer } = (json ?? {}) as Partial<Explanation>
  return typeof request === 'object' && Array.isArray(rules) && typeof answer === 'object'
}
