/** Calls every operation of an OpenAPI document without a key and with a wrong one. */
import type { Asked, Verdict } from './suites.js'

/** 429 is for a sender of many wrong keys. */
const REFUSALS = [401, 429]

interface Operation {
  readonly security?: readonly unknown[]
}
interface Document extends Operation {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** Fails when an operation was answered anything but a refusal. */
export async function keysAreAskedFor({
  document,
  key,
  paths = '',
  parameters = {},
}: Asked): Promise<Verdict> {
  const { paths: items, security } = (await (await fetch(document)).json()) as Document
  const [scheme] = key.split(' ')
  const wrong: string[] = []
  let asked = 0
  for (const [path, item] of Object.entries(items)) {
    if (!new RegExp(paths).test(path)) continue
    const place = path.replace(/\{([^{}]*)\}/g, (_, name) => parameters[name] ?? 'unknown')
    for (const [name, operation] of Object.entries(item)) {
      if (!(operation.security ?? security)?.length) continue
      const method = name.toUpperCase()
      for (const authorization of [undefined, `${scheme} wrong-${asked}`]) {
        const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
        const { status } = await fetch(new URL(place, document), { method, headers, redirect: 'manual' })
        asked += 1
        if (!REFUSALS.includes(status)) wrong.push(`${method} ${path}: ${status}`)
      }
    }
  }
  if (wrong.length > 0) return { failed: true, summary: wrong.join('\n') }
  if (asked === 0) return { failed: true, summary: 'no operation asks for a key' }
  return { failed: false, summary: `${asked} asked, all refused` }
}
