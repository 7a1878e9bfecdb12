/** Numbers as people read them. */

/** Whole numbers with their thousands apart: `12,345`. */
export function grouped(number: number): string {
  return Math.round(number).toLocaleString('en-US')
}

/** A share of 1 as per cent, as precise as it is small: `12 %`, `1.2 %`, `0.034 %`. */
export function percent(share: number): string {
  const value = share * 100
  if (value === 0 || value >= 10) return `${Math.round(value)} %`
  return `${Number(value.toPrecision(2))} %`
}
