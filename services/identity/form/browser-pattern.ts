/** A schema's pattern as the `pattern` attribute of an input (WHATWG HTML, "the pattern attribute"). */
import { ESCAPED } from './pattern-syntax.js'

/** A schema's pattern has been read before, so its classes end. */
const CLASS_OR_ESCAPE = /\\.|\[\^?((?:\\.|[^\]\\])*)\]?/gs
const ATOM = new RegExp(`${ESCAPED}|.`, 'gsu')

/**
 * HTML's pattern has to match the whole text, the schema's may match anywhere. Browsers compile it with the flag `v`,
 * which needs more escapes inside a class than the `u` of schemas. Undefined where a browser could not compile it.
 */
export function browserPattern(pattern: string): string | undefined {
  const escaped = pattern.replace(CLASS_OR_ESCAPE, (part, inside: string | undefined) =>
    inside ? `${part.startsWith('[^') ? '[^' : '['}${escapedClass(inside)}]` : part,
  )
  // In some browsers (V8 11) `[^]` matches nothing under the flag `v`.
  const whole = String.raw`[\s\S]*(?:${escaped})[\s\S]*`
  try {
    new RegExp(whole, 'v')
    return whole
  } catch {
    return undefined
  }
}

function escapedClass(inside: string): string {
  const atoms = inside.match(ATOM) ?? []
  let escaped = ''
  for (let at = 0; at < atoms.length; at++) {
    escaped += escapedAtom(atoms[at] as string)
    const end = atoms[at + 2]
    if (atoms[at + 1] === '-' && end !== undefined) {
      escaped += `-${escapedAtom(end)}`
      at += 2
    }
  }
  return escaped
}

function escapedAtom(atom: string): string {
  return /^[()[\]{}/|-]$/.test(atom) ? `\\${atom}` : atom
}
