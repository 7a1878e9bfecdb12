/** Reads the command line, suggests corrections, and explains what may be written there (`--help`). */
import { parseArgs } from 'node:util'
import { nearest } from '../config/problem.js'
import { withoutSecret } from '../gateway/identify/api-keys/key-file.js'
import { type Arguments, type Command, type Option, type Options, Unusable } from './command.js'
import { wrap } from './text.js'

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
    throw new Unusable(`"${command.name}" does not take "${withoutSecret(extra)}".`)
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

/** The help of one command: its usage, what it does, its options, an example. */
export function commandHelp(
  { name, summary, operands, options, details, example }: Command,
  columns: number,
): string {
  const usage = ['sluice', name, operands.usage, '[options]'].filter(Boolean).join(' ')
  const rows = Object.entries(options).map(([option, about]): [string, string] => [
    spelling(option, about),
    'default' in about && about.default !== '' ? `${about.help} (${about.default})` : about.help,
  ])
  return [
    wrap(`Usage: ${usage}`, columns),
    wrap(`${summary}.`, columns),
    definitions([...rows, ['-h, --help', 'this text']], columns),
    ...(details ?? '')
      .split('\n\n')
      .filter(Boolean)
      .map(text => (text.startsWith('  ') ? text : wrap(text.replaceAll('\n', ' '), columns))),
    `Example:\n${example.replace(/^/gm, '  ')}`,
  ]
    .join('\n\n')
    .concat('\n')
}

/** The help of `sluice` itself. */
export function generalHelp(
  commands: readonly { readonly name: string; readonly summary: string }[],
  columns: number,
): string {
  return `${[
    'Sluice, a rate-limiting gateway.',
    wrap('Usage: sluice COMMAND [options]', columns),
    definitions(
      commands.map(({ name, summary }) => [name, summary]),
      columns,
    ),
    wrap(
      '"sluice COMMAND --help" explains each, with an example. "sluice --version" prints the version.',
      columns,
    ),
    wrap('Exit codes: 0 fine, 1 findings or a failure, 2 wrong usage or input that cannot be read.', columns),
  ].join('\n\n')}\n`
}

function spelling(name: string, option: Option): string {
  const short = option.short === undefined ? '' : `-${option.short}, `
  return `${short}--${name}${option.type === 'string' ? ` ${option.value}` : ''}`
}

const NARROW_INDENT = 6

/** Words in a column with their meanings beside them, or below them on a narrow terminal. */
function definitions(rows: readonly (readonly [string, string])[], columns: number): string {
  const width = Math.max(...rows.map(([word]) => word.length)) + 4
  const beside = columns >= width + 30
  return rows
    .map(([word, meaning]) => {
      const indent = ' '.repeat(beside ? width : NARROW_INDENT)
      const lines = wrap(meaning, columns - indent.length).replaceAll('\n', `\n${indent}`)
      return beside ? `${`  ${word}`.padEnd(width)}${lines}` : `  ${word}\n${indent}${lines}`
    })
    .join('\n')
}
