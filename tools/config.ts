/** What commands that read the configuration have in common. */
import type { Log } from '../gateway/types.js'

/** The option that names it. */
export const CONFIG = {
  type: 'string',
  value: 'PATH',
  default: 'config',
  help: 'gateway.yaml or its folder',
} as const

/** Commands report what they find themselves. */
export const quiet: Log = { debug() {}, info() {}, warn() {}, error() {} }
