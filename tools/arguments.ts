/** Reads the command line, and suggests corrections. */
import { parseArgs } from 'node:util'
import { nearest } from '../config/problem.js'
import { type Arguments, type Command, type Options, Unusable } from './command.js'

/** Every command has this option. */
const HELP = { type: 'boolean', short: 'h', help: 'this text' } as const

/** @throws {Unusable} when the arguments do not fit the command; returns `'help'` when help is asked for. */
export function readArguments(command: Command, written: readonly string[]): Arguments | 'help' {
  const options: Options = { ...command.options, help: HELP }
  checkNames(options, written)
  const { values, positionals, tokens } = parse(options, written)
  checkValues(options, tokens)
  if (values.help) return 'help'
  const { usage, least, most } = command.operands
  if (positionals.length < least) throw new Unusable(`"${command.name}" needs ${usage}.`)
  if (positionals.length > most) {
    const extra = positionals[most] as string
    throw new Unusable(`"${command.name}" does not take "${extra}".`)
  }
  return { values: withAbsent(options, values), positionals } as Arguments
}

/** parseArgs does not suggest what an unknown option may have meant. */
function checkNames(options: Options, written: readonly string[]): void {
  for (const word of written) {
    if (word === '--') return
    const [, name] = /^--([^=]+)/.exec(word) ?? []
    if (name === undefined || Object.hasOwn(options, name)) continue
    throw new Unusable(`There is no option --${name}.${didYouMean(name, Object.keys(options), '--')}`)
  }
}

/** Values that name something: an empty one probably comes from a variable that is not set. */
const NAMES: ReadonlySet<string | undefined> = new Set(['PATH', 'WHERE', 'DIR', 'FILE', 'NAME', 'URL'])

/** parseArgs silently takes the last of several values, and accepts an empty one. */
function checkValues(options: Options, tokens: ReturnType<typeof parse>['tokens']): void {
  const seen = new Set<string>()
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    const option = options[token.name]
    if (option?.type !== 'string' || option.multiple) continue
    if (token.value === '' && NAMES.has(option.value)) {
      throw new Unusable(`--${token.name} is empty.`)
    }
    if (seen.has(token.name)) {
      throw new Unusable(`--${token.name} is given more than once; it takes one ${option.value}.`)
    }
    seen.add(token.name)
  }
}

function parse(options: Options, written: readonly string[]) {
  try {
    return parseArgs({ args: [...written], options, allowPositionals: true, tokens: true })
  } catch (error) {
    const [sentence = ''] = (error as Error).message.split('. ')
    throw new Unusable(`${sentence.replaceAll('\n', ' ').replace(/\.$/, '')}.`)
  }
}

function withAbsent(options: Options, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const complete: Record<string, unknown> = {}
  for (const [name, option] of Object.entries(options)) {
    const absent = option.type === 'boolean' ? false : option.multiple ? [] : undefined
    complete[name] = values[name] ?? absent
  }
  return complete
}

/** ` Did you mean --json?`, or '' when no candidate is close. */
export function didYouMean(word: string, candidates: readonly string[], prefix = ''): string {
  const meant = nearest(word, candidates)
  return meant === undefined ? '' : ` Did you mean ${prefix}${meant}?`
}
