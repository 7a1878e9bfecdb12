/** `sluice credit`: what is added to the lifetime windows of a project in the running gateway. */
import { randomUUID } from 'node:crypto'
import { ask, KEY_HELP, LIVE, print, REASON } from '../admin.js'
import { defineCommand, Unusable } from '../command.js'
import { columns, grouped, minuteOf, printable, table } from '../text.js'

interface ReportedCredit {
  readonly bucket: string
  readonly window: string
  readonly amount: number
  /** All credit of the window after it. */
  readonly credit: number
  readonly why: string
  readonly by: string
  readonly at: string
}

/** As returned by `POST /projects/ID/credit`. */
interface AddedCredit extends ReportedCredit {
  readonly project: string
  /** True if the same id had added it before. */
  readonly repeated: boolean
}

/** As returned by `GET /projects/ID/credit`. */
interface ReportedCredits {
  readonly windows: readonly {
    readonly bucket: string
    readonly window: string
    readonly quota: number
    readonly credit: number | null
    readonly used: number | null
    readonly left: number | null
  }[]
  readonly credits: readonly ReportedCredit[]
}

export const credit = defineCommand({
  name: 'credit',
  summary: 'Add credit to a lifetime window of a project, or show what it has',
  operands: { usage: 'PROJECT', least: 1, most: 1 },
  options: {
    bucket: { type: 'string', value: 'NAME', help: 'the bucket' },
    window: { type: 'string', value: 'NAME', help: 'its lifetime window' },
    amount: { type: 'string', value: 'NUMBER', help: 'how much is added; a negative number takes it back' },
    id: {
      type: 'string',
      value: 'TEXT',
      help: 'such as the number of a payment: the same id adds only once within a week',
    },
    ...REASON,
    ...LIVE,
  },
  details: `Without --amount it shows the lifetime windows of the project and the newest hundred credits. Credit is there for all gateways on one Redis at once; one that remembers a refusal admits again after a second at most. To take credit back, write --amount=-100. --why is required to change it. ${KEY_HELP}`,
  example: `sluice credit acme-production --bucket images --window prepaid --amount 50000 --id INV-7 --why "Invoice 7 is paid"
sluice credit acme-production`,
  async run({ values, positionals: [project = ''] }, io) {
    const { bucket, window, amount, id = randomUUID(), why, by, live, json } = values
    const path = `/projects/${encodeURIComponent(project)}/credit`
    if (amount === undefined) {
      if (bucket !== undefined || window !== undefined || why !== undefined)
        throw new Unusable('Say how much: --amount NUMBER.')
      const answer = await ask<ReportedCredits>({ path }, live, io)
      print(answer, json, io, one => listText(one, io.columns))
      return 0
    }
    if (bucket === undefined || window === undefined)
      throw new Unusable('Say where: --bucket NAME --window NAME.')
    if (why === undefined) throw new Unusable('Say why: --why TEXT.')
    const body = { bucket, window, amount: wholeNumber(amount), why, by }
    if (!/^[!-~]([ -~]*[!-~])?$/.test(id))
      throw new Unusable('--id may hold letters, digits and punctuation of ASCII, and blanks between them.')
    const headers = { 'idempotency-key': id }
    const answer = await ask<AddedCredit>({ method: 'POST', path, body, headers }, live, io)
    print(answer, json, io, addedText)
    return 0
  },
})

function wholeNumber(text: string): number {
  const number = /^[+-]?\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(number)) return number
  throw new Unusable(
    `--amount must be a whole number of at most ${Number.MAX_SAFE_INTEGER}, not "${printable(text)}".`,
  )
}

function addedText({ project, bucket, window, amount, credit, repeated, at }: AddedCredit): string {
  const name = printable(`${bucket}.${window} of ${project}`)
  if (repeated) return `${name}: ${grouped(amount)} was added at ${at} already; nothing has changed.\n`
  const done = amount < 0 ? `${grouped(-amount)} taken back` : `${grouped(amount)} added`
  return `${name}: ${done}, ${grouped(credit)} of credit now.\n`
}

const WINDOWS = columns(['window'], ['in all', 'of it credit', 'used', 'left'])
const CREDITS = [...columns(['at', 'window'], ['amount', 'credit']), ...columns(['by', 'why'])]

function listText({ windows, credits }: ReportedCredits, width: number): string {
  if (windows.length === 0) return 'No bucket of this project has a lifetime window.\n'
  const number = (value: number | null) => (value === null ? '?' : grouped(value))
  const rows = windows.map(({ bucket, window, quota, credit, used, left }) => {
    return [`${bucket}.${window}`, ...[quota, credit, used, left].map(number)]
  })
  const given = credits.map(({ at, bucket, window, amount, credit, by, why }) => {
    return [minuteOf(at), `${bucket}.${window}`, grouped(amount), grouped(credit), by, why]
  })
  const list = given.length === 0 ? 'No credit was added yet.\n' : table(CREDITS, given, width)
  return `${table(WINDOWS, rows, width)}\n${list}`
}
