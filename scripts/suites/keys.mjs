/** Calls every operation of an OpenAPI document without a key and with a wrong one. */

/** 429 is for a sender of many wrong keys. */
const REFUSALS = [401, 429]

/** @returns {Promise<{failed: boolean, told: string}>} failed when an operation was answered anything but a refusal */
export async function keysAreAskedFor({ document, key, paths = '', parameters = {} }) {
  const { paths: items, security } = await (await fetch(document)).json()
  const [scheme] = key.split(' ')
  const wrong = []
  let asked = 0
  for (const [path, item] of Object.entries(items)) {
    if (!new RegExp(paths).test(path)) continue
    for (const [method, operation] of Object.entries(item)) {
      if (!(operation.security ?? security)?.length) continue
      for (const headers of [{}, { authorization: `${scheme} wrong-${asked}` }]) {
        const url = new URL(
          path.replace(/\{([^{}]*)\}/g, (_, name) => parameters[name] ?? 'unknown'),
          document,
        )
        const { status } = await fetch(url, { method: method.toUpperCase(), headers, redirect: 'manual' })
        asked += 1
        if (!REFUSALS.includes(status)) wrong.push(`${method.toUpperCase()} ${path}: ${status}`)
      }
    }
  }
  const failed = wrong.length > 0 || asked === 0
  return {
    failed,
    told: failed ? wrong.join('\n') || 'no operation asks for a key' : `${asked} asked, all refused`,
  }
}
