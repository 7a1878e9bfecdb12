/** Reports rules and buckets that count JSON-RPC calls where none can come: such calls are sent with POST. */
import type { Path } from '../../config/problem.js'
import { keyOf, patternsOf } from '../../config/words/bucket.js'
import type { KeyPart } from '../../config/words/words.js'
import { parsePattern } from '../../gateway/policy/pattern.js'
import type { Remark, Subject } from './lint.js'

interface Counting {
  readonly what: string
  readonly file: string
  readonly path: Path
  readonly key: readonly KeyPart[]
  readonly patterns: readonly string[]
}

export function checkCalls({ rules, limits }: Subject): Remark[] {
  const buckets = limits.flatMap(({ file, document }) =>
    Object.entries(document.buckets).map(([name, bucket]): Counting => {
      const patterns = patternsOf(bucket, []).map(({ text }) => text)
      return { what: `Bucket "${name}"`, file, path: ['buckets', name, 'key'], key: keyOf(bucket), patterns }
    }),
  )
  const others = rules.flatMap(({ file, document }) =>
    document.rules.map(({ id, key, match }, i): Counting => {
      return { what: `Rule "${id}"`, file, path: ['rules', i, 'key'], key, patterns: match }
    }),
  )
  return [...buckets, ...others].flatMap(withoutPost)
}

function withoutPost({ what, file, path, key, patterns }: Counting): Remark[] {
  const isPost = (text: string) => ['POST', undefined].includes(parsePattern(text).method)
  if (!key.includes('json-rpc') || patterns.some(isPost)) return []
  const message = `${what} counts JSON-RPC calls, which are sent with POST, and none of its patterns can be one: all its requests count as unreadable. Name POST, or remove json-rpc from its key.`
  return [{ severity: 'warning', file, path, message }]
}
