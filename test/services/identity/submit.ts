import {
  type CompiledSchema,
  compileSchema,
  type ParseResult,
  parseForm,
} from '../../../services/identity/index.js'

/** A schema whose `traits` have these properties. */
export function traitsSchema(properties: object, rest: object = {}, root: object = {}): CompiledSchema {
  const traits = { type: 'object', properties, ...rest }
  return compileSchema({ type: 'object', required: ['traits'], properties: { traits }, ...root })
}

/** The result for a body: the traits, or `path code` of every error. */
export function told(result: ParseResult): unknown {
  return 'traits' in result ? result.traits : result.errors.map(({ path, code }) => `${path} ${code}`)
}

export const URL_ENCODED = 'application/x-www-form-urlencoded'

/** Submits a body of the given media type. */
export async function submit(schema: CompiledSchema, body: string | Buffer, contentType = URL_ENCODED) {
  return told(await parseForm(schema, { contentType, body: Buffer.from(body) }))
}

/** Submits entries url-encoded, as a browser does. */
export function submitEntries(schema: CompiledSchema, entries: readonly (readonly [string, string])[]) {
  return submit(schema, urlEncoded(entries))
}

/** The body a browser sends for these entries. */
export function urlEncoded(entries: readonly (readonly [string, string])[]): string {
  return entries.map(pair => pair.map(encodeURIComponent).join('=')).join('&')
}

export function submitJson(schema: CompiledSchema, document: unknown) {
  return submit(schema, JSON.stringify(document), 'application/json')
}

export const MULTIPART = 'multipart/form-data; boundary=XX'

/** A multipart body of parts: a name or whole parameters, and a value. */
export function multipart(parts: readonly (readonly [string, string])[], end = '--XX--\r\n'): string {
  const written = parts.map(([name, value]) => {
    const parameters = name.includes('=') ? name : `name="${name}"`
    return `--XX\r\nContent-Disposition: form-data; ${parameters}\r\n\r\n${value}\r\n`
  })
  return written.join('') + end
}
