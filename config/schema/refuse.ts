/** The shape of `refuse`: what responses show of a bucket or rule. */
import { Type } from 'typebox'
import { Strict } from './fields.js'

export const RefuseSchema = Strict(
  {
    fields: Type.Literal('none', {
      description:
        'none: no response shows its numbers, neither in rate-limit fields nor in the body of a refusal. Retry-After and the code stay.',
    }),
  },
  { description: 'What responses show. Default: its windows, except those of volumetric rules.' },
)
