import { jwtClaim } from './jwt-claim.js'
import { requestCost } from './request-cost.js'

/** What a `plugins:` entry brings in. */
export const plugins = [jwtClaim, requestCost]
