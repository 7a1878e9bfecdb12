/** The shape of a quota's `notify` in YAML, in buckets and in volumetric rules. */
import { type TSchema, Type } from 'typebox'
import type { HiddenAs } from '../words/hidden.js'
import type { Notify } from '../words/notify.js'
import { Strict } from './fields.js'
import { Percent } from './percent.js'

const MOST_THRESHOLDS = 8

/** A text that becomes a `Hidden` while the document is validated. */
const HiddenText = (as: HiddenAs, options: object): TSchema =>
  Type.Unsafe({ type: 'string', secret: true, hidden: as, ...options })

const { type: _, ...notify } = Strict(
  {
    at: Type.Array(
      Percent({
        minimum: 1,
        maximum: 100,
        expected: 'a share from 1% to 100%, such as 80%',
      }),
      {
        minItems: 1,
        maxItems: MOST_THRESHOLDS,
        description: 'Shares of each window that are reported when they are used up, such as [80%, 100%].',
      },
    ),
    url: HiddenText('address', {
      format: 'webhook-url',
      maxLength: 2048,
      expected: 'an address such as https://hooks.example.com/quota, without user, password and fragment',
      description: 'Gets a signed POST once for each window, share and key that is counted by.',
    }),
    secret: HiddenText('secret', {
      pattern: '^([!-~]{16,256})$',
      format: 'webhook-secret',
      expected:
        'a secret of 16 to 256 characters without spaces; after whsec_ at least 16 bytes in base64 follow',
      description:
        'Signs the calls, as webhooks of the directory are signed. Best from a variable of the environment.',
    }),
  },
  {
    // What stands in its place by mistake may be the address or the secret.
    secret: true,
    expected: 'a map with at, url and secret',
    description: 'Whom to tell that the quota is being used up.',
  },
)

export const NotifySchema = Type.Unsafe<Notify>({ type: 'object', ...notify })
