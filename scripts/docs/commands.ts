/** docs/reference/commands.md: the commands' own help, each under its name. */

import { commandHelp, generalHelp } from '../../tools/arguments.js'
import { COMMANDS } from '../../tools/commands.js'

const COLUMNS = 100

export async function commandsPage(): Promise<string> {
  const commands = await Promise.all(COMMANDS.map(entry => entry.load()))
  const block = (text: string) => `\`\`\`text\n${text.trimEnd()}\n\`\`\``
  return `# Command reference

What \`sluice COMMAND --help\` prints. Written by \`npm run docs\`; [the commands](../tools.md) shows each of them at work.

${block(generalHelp(commands, COLUMNS))}
${commands.map(command => `\n## ${command.name}\n\n${block(commandHelp(command, COLUMNS))}\n`).join('')}`
}
