import { introspection } from './introspection.js'
import { requestCost } from './request-cost.js'

/** What a `plugins:` entry brings in. */
export const plugins = [introspection, requestCost]
