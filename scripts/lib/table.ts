/** Figures as Markdown. */

export function median(values: readonly number[]): number {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const [low = Number.NaN, high = low] = sorted.slice(sorted.length % 2 === 1 ? middle : middle - 1)
  return sorted.length % 2 === 1 ? low : (low + high) / 2
}

/** A table of texts. */
export function tableFrom(head: readonly string[], body: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...body.map(line)].join('\n')
}
