/** Names of hosts that routes and entries of `closed` can have. */
import { HOST_NAME_PATTERN } from '../../config/projects-schema.js'

const HOST_NAME = new RegExp(HOST_NAME_PATTERN)

/** False for patterns, and for names with a port. */
export const isHostName = (text: string): boolean => HOST_NAME.test(text)
