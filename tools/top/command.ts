/** `sluice top`: what happens now in the running gateway. */
import type { LiveSnapshot } from '../../gateway/admin/live-snapshot.js'
import { Failure } from '../../gateway/errors.js'
import { type AdminPort, adminPort } from '../admin.js'
import { defineCommand, NO_OPERANDS } from '../command.js'
import type { Io, Terminal } from '../io.js'
import { onceText, screenLines, type TopView } from './screen.js'
import { SECTION_NAMES, SECTIONS } from './sections.js'
import { follow, type SeenSnapshot } from './stream.js'

export const top = defineCommand({
  name: 'top',
  summary: 'Show what happens now in the running gateway',
  operands: NO_OPERANDS,
  options: {
    live: {
      type: 'string',
      value: 'WHERE',
      default: 'config',
      help: 'the running gateway: its admin address, or the configuration that names it',
    },
    once: { type: 'boolean', help: 'print it once, as text' },
    json: { type: 'boolean', help: 'print it once, as JSON' },
  },
  details: `Rates by rule and project, counters that are closest to their limits, slots, upstreams, the counter store, processes and the last reload, each second anew. Off a terminal it prints them once.

Keys: r, p, c, s and u show one table alone (rules, projects, closest, slots, upstreams), a all of them; left and right choose the column it is sorted by, up and down scroll, q quits. A mode with a star differs from that of the files.

With an address the key of the admin port comes from ADMIN_KEY. Exit code 1 when the gateway does not answer.`,
  example: `sluice top --live http://127.0.0.1:8081
sluice top --once --live ./config`,
  async run({ values }, io) {
    const port = await adminPort(values.live, io)
    const { terminal } = io
    if (terminal !== undefined && !values.once && !values.json) await watch(port, terminal, io)
    else {
      const snapshot = await lookTwice(port)
      if (values.json) io.out(`${JSON.stringify(snapshot, null, 2)}\n`)
      else io.out(onceText(snapshot, port.origin, { columns: io.columns, rows: 0, style: io.style }))
    }
    return 0
  },
})

/** Returns the second snapshot, because counters close to a limit are tracked only from the first one on. */
async function lookTwice(port: AdminPort): Promise<LiveSnapshot> {
  const ending = new AbortController()
  try {
    let isFirst = true
    for await (const seen of follow(port, ending.signal)) {
      if ('lost' in seen) throw new Failure(`${seen.lost}.`)
      if (!isFirst) return seen.snapshot
      isFirst = false
    }
  } finally {
    ending.abort()
  }
  throw new Failure('The gateway sent nothing.')
}

async function watch(port: AdminPort, terminal: Terminal, io: Io): Promise<void> {
  const ending = new AbortController()
  let view = FIRST_VIEW
  let last: LiveSnapshot | undefined
  let lost: string | undefined
  const draw = () => {
    if (last === undefined) return
    const canvas = { ...terminal.size, style: io.style }
    const lines = screenLines(last, port.origin, view, canvas, lost)
    io.out(`\x1b[H${lines.map(line => `${line}\x1b[K`).join('\r\n')}\x1b[J`)
  }
  const take = (seen: SeenSnapshot) => {
    if ('lost' in seen) lost = seen.lost
    else [last, lost] = [seen.snapshot, undefined]
    draw()
  }
  const key = (sequence: string) => {
    const next = pressed(sequence, view)
    if (next === undefined) ending.abort()
    else view = within(next, last)
    draw()
  }
  let release: (() => void) | undefined
  try {
    for await (const seen of follow(port, ending.signal)) {
      release ??= terminal.take({ key, resized: draw })
      take(seen)
    }
  } finally {
    release?.()
  }
}

/** The view, scrolled no further than its last row. */
function within(view: TopView, snapshot: LiveSnapshot | undefined): TopView {
  if (view.only === undefined || snapshot === undefined) return view
  const last = Math.max(0, SECTIONS[view.only].size(snapshot) - 1)
  return { ...view, from: Math.min(view.from, last) }
}

const FIRST_VIEW: TopView = { only: undefined, sorts: {}, from: 0 }

const LEFT = '\x1b[D'
const RIGHT = '\x1b[C'
const UP = '\x1b[A'
const DOWN = '\x1b[B'
const PAGE_UP = '\x1b[5~'
const PAGE_DOWN = '\x1b[6~'
const SCROLLS: Readonly<Record<string, number>> = { [UP]: -1, [DOWN]: 1, [PAGE_UP]: -10, [PAGE_DOWN]: 10 }
const QUIT = ['q', 'Q', '\x03', '\x04']

/** The view after a key; undefined means quit. Unknown keys change nothing. */
function pressed(sequence: string, view: TopView): TopView | undefined {
  if (QUIT.includes(sequence)) return undefined
  if (sequence === 'a' || sequence === '\x1b') return { ...view, only: undefined, from: 0 }
  const only = SECTION_NAMES.find(name => name.startsWith(sequence) && sequence.length === 1)
  if (only !== undefined) return { ...view, only, from: 0 }
  const by = SCROLLS[sequence]
  if (by !== undefined) return { ...view, from: Math.max(0, view.from + by) }
  if (sequence === LEFT || sequence === '<') return sorted(view, -1)
  if (sequence === RIGHT || sequence === '>') return sorted(view, 1)
  return view
}

/** When all sections are shown, this sorts the first one. */
function sorted(view: TopView, by: 1 | -1): TopView {
  const { only = 'rules', sorts } = view
  const most = SECTIONS[only].sorts
  return { ...view, sorts: { ...sorts, [only]: ((sorts[only] ?? 0) + by + most) % most } }
}
