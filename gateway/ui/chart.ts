/**
 * An hour of requests and of refusals, one above the other. Each has its own scale, or a few refusals would be
 * invisible.
 */
import type { LiveHistory, LivePoint } from '../admin/live-snapshot.js'
import { draw, make, setText } from './dom.js'
import { length, rate, time } from './format.js'

const LEFT = 44
const PANELS = { requests: { top: 18, height: 72 }, refusals: { top: 116, height: 72 } }
const BOTTOM = 204
type Panel = (typeof PANELS)[keyof typeof PANELS]

/** The value of a line at a point. */
type Value = (point: LivePoint) => number
const requests: Value = ({ allowed, limited, error }) => allowed + limited + error
const refused: Value = ({ limited }) => limited
const wouldRefuse: Value = ({ would_limit }) => would_limit

/** The chart, `width` pixels wide, with a readout of the point under the pointer. */
export function chartOf(history: LiveHistory, width: number): HTMLElement {
  const points = perSecond(history)
  const svg = draw('svg', {
    viewBox: `0 0 ${width} ${BOTTOM + 8}`,
    role: 'img',
    'aria-label': summary(history),
  })
  const steps = Math.max(1, points.length - 1)
  const x = (i: number) => LEFT + (i / steps) * (width - LEFT - 8)

  const add = (panel: Panel, title: string, lines: readonly { name: string; value: Value }[]) => {
    const top = scaleTop(Math.max(0, ...lines.flatMap(({ value }) => points.map(value))))
    const y = (value: number) => panel.top + panel.height * (1 - value / top)
    for (const mark of [0, top / 2, top]) {
      svg.append(
        draw('line', { class: 'grid', x1: LEFT, x2: width - 8, y1: y(mark), y2: y(mark) }),
        draw('text', { class: 'scale', x: LEFT - 6, y: y(mark) + 4, 'text-anchor': 'end' }, rate(mark)),
      )
    }
    svg.append(draw('text', { class: 'panel', x: LEFT, y: panel.top - 5 }, title))
    for (const { name, value } of lines) {
      if (name !== 'requests' && points.every(point => value(point) === 0)) continue
      svg.append(
        draw('path', {
          class: name,
          d: `M${points.map((p, i) => `${round(x(i))} ${round(y(value(p)))}`).join('L')}`,
        }),
      )
    }
  }
  add(PANELS.requests, 'requests a second', [{ name: 'requests', value: requests }])
  add(PANELS.refusals, 'refusals a second', [
    { name: 'would', value: wouldRefuse },
    { name: 'refused', value: refused },
  ])
  for (const { i, label } of clockMarks(history)) {
    if (x(i) > width - 20) continue
    svg.append(draw('text', { class: 'scale', x: x(i), y: BOTTOM + 4, 'text-anchor': 'middle' }, label))
  }

  const readout = make('p', { class: 'readout', 'aria-hidden': 'true' })
  const cursor = draw('line', { class: 'cursor', y1: 18, y2: BOTTOM - 16 })
  svg.addEventListener('pointermove', event => {
    const box = svg.getBoundingClientRect()
    const at = (((event.clientX - box.left) / box.width) * width - LEFT) / (width - LEFT - 8)
    const i = Math.min(points.length - 1, Math.max(0, Math.round(at * steps)))
    const point = points[i]
    if (point === undefined) return
    svg.append(cursor)
    cursor.setAttribute('x1', String(x(i)))
    cursor.setAttribute('x2', String(x(i)))
    const when = time(Date.parse(history.from) + i * history.step_ms)
    setText(
      readout,
      `${when}: ${rate(requests(point))} requests, ${rate(refused(point))} refused, ${rate(wouldRefuse(point))} would be refused a second`,
    )
  })
  return make('figure', { class: 'chart' }, svg, make('figcaption', {}, summary(history)), readout)
}

/** The curves in words: since when requests have been refused, and the highest rate. */
function summary({ points, from, step_ms }: LiveHistory): string {
  const seen = [
    since('Refused', points, refused, from, step_ms),
    since('Would be refused', points, wouldRefuse, from, step_ms),
  ].filter(one => one !== undefined)
  const over = length(points.length * step_ms)
  return seen.length === 0 ? `Nothing was refused in the last ${over}.` : seen.join(' ')
}

/** Number of steps without refusals that end a stretch; a shorter pause may be chance. */
const QUIET_STEPS = 6

function since(
  word: string,
  points: readonly LivePoint[],
  value: Value,
  from: string,
  stepMs: number,
): string | undefined {
  const last = points.findLastIndex(point => value(point) > 0)
  if (last < 0) return undefined
  let first = last
  for (let i = last; i >= 0 && first - i <= QUIET_STEPS; i--) if (value(points[i] as LivePoint) > 0) first = i
  const at = (i: number) => time(Date.parse(from) + i * stepMs)
  const worst = Math.max(...points.slice(first, last + 1).map(value)) / (stepMs / 1000)
  const isNow = points.length - 1 - last <= 1
  const stretch = isNow
    ? `since ${at(first)} (${length((points.length - first) * stepMs)})`
    : `from ${at(first)} to ${at(last + 1)}`
  return `${word} ${first === 0 && isNow ? `during all of the last ${length(points.length * stepMs)}` : stretch}, at most ${rate(worst)} a second.`
}

function perSecond({ points, step_ms }: LiveHistory): LivePoint[] {
  const by = 1000 / step_ms
  return points.map(({ allowed, limited, would_limit, error }) => ({
    allowed: allowed * by,
    limited: limited * by,
    would_limit: would_limit * by,
    error: error * by,
  }))
}

/** The smallest of 1, 2, 5, 10, 20 … that is not below a value. */
function scaleTop(value: number): number {
  if (value <= 1) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5, 10].find(times => times * power >= value) as number) * power
}

/** Marks at full minutes, few enough for an hour's axis. */
function clockMarks({ points, from, step_ms }: LiveHistory): { i: number; label: string }[] {
  const begin = Date.parse(from)
  const whole = points.length * step_ms
  const every = 60_000 * ([1, 2, 5, 10].find(minutes => whole / (minutes * 60_000) <= 7) ?? 10)
  const marks = []
  for (let at = Math.ceil(begin / every) * every; at < begin + whole; at += every) {
    marks.push({ i: (at - begin) / step_ms, label: time(at).slice(-8, -3) })
  }
  return marks
}

const round = (number: number) => Math.round(number * 10) / 10
