/** `sluice encryption`: changes the key that encrypts stored secrets, while the gateway runs. */

import { Failure } from '../gateway/errors.js'
import { defineCommand, Unusable } from './command.js'
import { count, grouped, printable } from './text.js'

const MOST_LISTED = 10

export const encryption = defineCommand({
  name: 'encryption',
  summary: 'Encrypt stored secrets again with the first key of ENCRYPTION_KEY',
  operands: { usage: 'rotate', least: 1, most: 1 },
  options: { json: { type: 'boolean', help: 'one JSON object instead of text' } },
  details: `Takes ENCRYPTION_KEY, DATA_DIR and MONGODB_URL (or the files named by ENCRYPTION_KEY_FILE and so on) from the
environment, like the gateway, and works while gateways run. First start every gateway with both keys, the new one first. Exit code 0: older keys are no longer needed. 1: something is still encrypted with one of them.`,
  example: 'ENCRYPTION_KEY="$NEW_KEY,$OLD_KEY" sluice encryption rotate',
  async run({ values, positionals: [action] }, io) {
    if (action !== 'rotate')
      throw new Unusable(`"encryption" knows "rotate", not "${printable(action ?? '')}".`)
    const rotation = await rotateKeys(io.env)
    io.out(values.json ? `${JSON.stringify(rotation)}\n` : text(rotation))
    return rotation.done && rotation.unreadable.length === 0 ? 0 : 1
  },
})

function text({ directories, reencrypted, unreadable, done }: Rotation): string {
  const lines = [
    `${count(directories, 'directory', 'directories')}, ${grouped(reencrypted)} of them encrypted again.`,
  ]
  if (unreadable.length > 0) {
    const listed = unreadable.slice(0, MOST_LISTED).join(', ')
    const more = unreadable.length > MOST_LISTED ? ', …' : ''
    lines.push(
      `${count(unreadable.length, 'directory has', 'directories have')} a secret that none of the keys can decrypt: ${listed}${more}. Add the key they were stored under.`,
    )
  }
  if (!done) {
    lines.push(
      'Secrets were still written under an older key: start every gateway with the new key first, then rotate again.',
    )
  } else if (unreadable.length === 0)
    lines.push('All secrets are encrypted with the first key: older keys are no longer needed.')
  return `${lines.join('\n')}\n`
}

/** How a rotation ended. */
interface Rotation {
  readonly directories: number
  readonly reencrypted: number
  /** Ids of directories with a secret that none of the keys decrypts. */
  readonly unreadable: readonly string[]
  /** True when everything readable is encrypted with the first key. */
  readonly done: boolean
}

/**
 * Re-encrypts the directory service's stored secrets with the first key of ENCRYPTION_KEY; the service may be running
 * meanwhile. @throws {Failure}
 */
async function rotateKeys(env: NodeJS.ProcessEnv): Promise<Rotation> {
  const directory = await import('../services/directory/index.js')
  try {
    return await directory.rotateKeys({ env })
  } catch (error) {
    throw new Failure(`The keys cannot be rotated: ${(error as Error).message}.`, { cause: error })
  }
}
