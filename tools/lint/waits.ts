/** Reports rules that say how long requests may wait, but refuse none yet. */
import { bucketWaits } from '../../config/words/bucket.js'
import { waitsOf } from '../../config/words/waits.js'
import { IN_FLIGHT } from '../../config/words/words.js'
import type { Remark, Subject } from './lint.js'

export function checkWaits({ limits, rules }: Subject): Remark[] {
  const remark = { severity: 'note', message: MESSAGE } as const
  const buckets = limits.flatMap(({ file, document: { mode, buckets } }) =>
    mode === 'enforce'
      ? []
      : Object.entries(buckets)
          .filter(([, bucket]) => bucketWaits(bucket) !== undefined)
          .map(([name]) => ({ ...remark, file, path: ['buckets', name, 'wait'] })),
  )
  const slots = rules
    .filter(({ kind }) => kind === IN_FLIGHT)
    .flatMap(({ file, document }) =>
      document.rules.flatMap((rule, i) =>
        rule.mode === 'enforce' || waitsOf(rule) === undefined
          ? []
          : [{ ...remark, file, path: ['rules', i, 'wait'] }],
      ),
    )
  return [...buckets, ...slots]
}

const MESSAGE = 'Nobody waits while this is report-only: "wait" has an effect once it is enforced.'
