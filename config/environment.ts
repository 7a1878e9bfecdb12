/** `${NAME}` and `${NAME:-default}` in scalars, from the environment or the file named by `NAME_FILE`. */
import { type Path, unknownName } from './problem.js'
import { readSecret, type Secret } from './secret-file.js'
import { isRequestValue, mayHoldValues, REQUEST_VALUES } from './words/request-values.js'

const REFERENCE = /\$\{([^}]*)(\}?)/g
const NAME_AND_DEFAULT = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s
const NUMBER = /^-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,9})?$/

export type Expanded =
  | {
      readonly value: string | number | boolean
      /** The variables whose values it contains: messages name these instead of quoting the value. */
      readonly variables?: readonly string[]
    }
  | { readonly fault: string }

/** Replaces the references of a document's scalars; in some places of gateway.yaml, values of requests are left alone. */
export function expandIn(
  env: NodeJS.ProcessEnv,
  read?: (file: string) => Secret,
): (text: string, path: Path) => Expanded {
  return (text, path) => expand(text, env, read, mayHoldValues(path))
}

/**
 * Replaces every reference in a scalar. Runs after parsing, so a value cannot change the document's structure, and a
 * value is not expanded again. A scalar that is one reference and nothing else may become a number or a boolean.
 *
 * @param hasValues leaves values of requests such as `${project.id}` as they are; variables are then in capitals, and
 * the result is text
 */
export function expand(
  text: string,
  env: NodeJS.ProcessEnv,
  read: (file: string) => Secret = readSecret,
  hasValues = false,
): Expanded {
  const faults: string[] = []
  const variables: string[] = []
  const value = text.replace(REFERENCE, (whole, inside: string, close: string) => {
    if (hasValues && /^[a-z]/.test(inside)) {
      if (isRequestValue(inside) && close === '}') return whole
      faults.push(close === '}' ? unknownValue(inside) : `"${whole}" has no closing brace.`)
      return ''
    }
    const reference = close === '}' ? NAME_AND_DEFAULT.exec(inside) : null
    const looked =
      reference?.[1] === undefined
        ? { fault: `"${whole}" is not a reference. Write \${NAME} or \${NAME:-default}.` }
        : look(reference[1], reference[2], env, read)
    if ('fault' in looked) faults.push(looked.fault)
    if ('fault' in looked) return ''
    if (looked.variable !== undefined) variables.push(looked.variable)
    return looked.value
  })
  const [fault] = faults
  if (fault !== undefined) return { fault }
  return { value: !hasValues && /^\$\{[^}]*\}$/.test(text) ? typed(value) : value, variables }
}

function unknownValue(name: string): string {
  const what = unknownName('value of a request', name, new Set(REQUEST_VALUES))
  return `${what} Variables of the environment are in capitals here.`
}

type Found = { readonly value: string } | { readonly fault: string }

/** The value of a variable, or of the file that `NAME_FILE` names; undefined when neither is set. */
export function readVariable(
  name: string,
  env: NodeJS.ProcessEnv,
  read: (file: string) => Secret = readSecret,
): Found | undefined {
  const set = env[name]
  const file = env[`${name}_FILE`]
  if (!file) return set === undefined ? undefined : { value: set }
  if (set) return { fault: `Both ${name} and ${name}_FILE are set. Set only one of them.` }
  const secret = read(file)
  return 'text' in secret
    ? { value: secret.text }
    : { fault: `The file named by ${name}_FILE ${secret.fault}.` }
}

/** `variable` is absent if the default was used. */
type Looked = { readonly value: string; readonly variable?: string } | { readonly fault: string }

function look(
  name: string,
  fallback: string | undefined,
  env: NodeJS.ProcessEnv,
  read: (file: string) => Secret,
): Looked {
  const found = readVariable(name, env, read)
  if (found && 'fault' in found) return found
  if (found && (found.value !== '' || fallback === undefined)) return { ...found, variable: name }
  if (fallback !== undefined) return { value: fallback }
  const message = `The environment variable ${name} is not set. Set it (or ${name}_FILE), or write \${${name}:-default}.`
  return { fault: message }
}

function typed(text: string): string | number | boolean {
  if (text === 'true' || text === 'false') return text === 'true'
  return NUMBER.test(text) ? Number(text) : text
}
