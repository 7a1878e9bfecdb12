/** The text of `--help`. */
import type { Command, Option } from './command.js'
import { wrap } from './text.js'

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
