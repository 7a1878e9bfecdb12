/** Divisibility of decimal numbers as people write them (draft-07 validation, section 6.2.1). */

/** True when `value` is a whole number of times `divisor`, both taken by their shortest decimal text. */
export function isMultiple(value: number, divisor: number): boolean {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(divisor)) return value % divisor === 0
  const [a, b] = [decimal(value), decimal(divisor)]
  const exponent = Math.min(a.exponent, b.exponent)
  return scaled(a, exponent) % scaled(b, exponent) === 0n
}

interface Decimal {
  readonly digits: string
  /** The power of ten the digits are multiplied by. */
  readonly exponent: number
}

function decimal(number: number): Decimal {
  const [digits = '', exponent] = number.toExponential().split('e')
  const [whole, fraction = ''] = digits.split('.')
  return { digits: `${whole}${fraction}`, exponent: Number(exponent) - fraction.length }
}

function scaled({ digits, exponent }: Decimal, to: number): bigint {
  return BigInt(digits) * 10n ** BigInt(exponent - to)
}
