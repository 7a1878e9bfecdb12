/** Sizes as people write them (`64KiB`, `1MiB`), or as numbers; read as numbers of bytes. */
import { type TUnsafe, Type } from 'typebox'

const UNITS: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }
const SHAPE = /^([0-9]{1,6})(KiB|MiB|GiB)$/

/** `1MiB` → 1048576; undefined for any other text. */
export function parseSize(text: string): number | undefined {
  const [, count, unit = ''] = SHAPE.exec(text) ?? []
  return count === undefined ? undefined : Number(count) * (UNITS[unit] as number)
}

/** Schema of a field written as a number of bytes or as a size; after validation it holds the number. */
export function Size(options: { readonly description: string }): TUnsafe<number> {
  return Type.Unsafe<number>({
    type: ['integer', 'string'],
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    pattern: SHAPE.source,
    size: true,
    expected: 'a number of bytes, or a size such as 64KiB, 1MiB or 2GiB',
    ...options,
  })
}
