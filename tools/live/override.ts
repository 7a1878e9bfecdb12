/** `sluice override`: negotiated limits of single projects in the running gateway. */
import { quotaWords, type WrittenQuota } from '../../config/negotiated-limit.js'
import { listed } from '../../config/problem.js'
import { UNLIMITED } from '../../config/words/words.js'
import { parseYaml } from '../../config/yaml.js'
import { ask, KEY_HELP, LIVE, print, REASON, UNTIL } from '../admin.js'
import { defineCommand, Unusable } from '../command.js'
import { columns, minuteOf, printable, table } from '../text.js'

/** As returned by `GET /projects/overrides`. */
interface ReportedLimit {
  readonly project: string
  readonly bucket: string
  readonly quota: WrittenQuota
  readonly listed: boolean
  readonly until: string | null
  readonly in_force: boolean
  readonly without_effect: string | null
  readonly src: string
  readonly since: string | null
  readonly why: string | null
  readonly by: string | null
}
interface ReportedLimits {
  /** Of the project that was asked for; false if only credentials can name it. */
  readonly listed?: boolean
  readonly overrides: readonly ReportedLimit[]
}

/** The words, each with the number of operands that follow it. */
const WORDS: Readonly<Record<string, readonly [least: number, most: number, usage: string]>> = {
  list: [0, 1, 'at most a project'],
  set: [3, 3, 'a project, a bucket and a quota'],
  undo: [2, 2, 'a project and a bucket'],
}

export const override = defineCommand({
  name: 'override',
  summary: 'Give a project a limit of its own now, without editing files',
  operands: {
    usage: 'list [PROJECT] | set PROJECT BUCKET QUOTA | undo PROJECT BUCKET',
    least: 1,
    most: 4,
  },
  options: { ...REASON, until: UNTIL, ...LIVE },
  details: `QUOTA is written as in projects.yaml: unlimited, or a map such as "{ burst: 50, sustained: 600 }". It is laid over the limit of the files: what it leaves out stays. It lasts until "undo" or the time of --until, also after a reload, in all gateways on one Redis. --why is required to set one. "list" shows what was set; with a project, also what projects.yaml gives it. ${KEY_HELP}`,
  example: `sluice override set acme-production catch-all "{ sustained: 900 }" --until 2026-12-31 --why "Contract of 1 May"
sluice override undo acme-production catch-all`,
  async run({ values, positionals: [word = '', ...operands] }, io) {
    const { why, by, until, live, json } = values
    const known = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined
    if (known === undefined)
      throw new Unusable(`"override" knows ${listed(Object.keys(WORDS), 'and')}, not "${printable(word)}".`)
    const [least, most, usage] = known
    if (operands.length < least || operands.length > most)
      throw new Unusable(`"override ${word}" takes ${usage}.`)
    const [project, bucket = '', quota = ''] = operands
    if (word === 'list') {
      const path = project === undefined ? '/projects/overrides' : pathOf(project)
      const answer = await ask<ReportedLimits>({ path }, live, io)
      print(answer, json, io, ({ overrides }) => listText(overrides, project, io.columns))
      if (answer.listed === false) {
        io.err(
          `${printable(project ?? '')} is not in projects.yaml: it is known only if a credential names it.\n`,
        )
      }
      return 0
    }
    const path = `${pathOf(project ?? '')}/${encodeURIComponent(bucket)}`
    if (word === 'undo') {
      if (until !== undefined) throw new Unusable('--until is for set.')
      const call = { method: 'DELETE', path, query: { why, by } }
      const { removed } = await ask<{ readonly removed: ReportedLimit }>(call, live, io)
      print(removed, json, io, one => `${nameOf(one)}: undone. What the files say is in force.\n`)
      return 0
    }
    const keys = keysIn(quota)
    if (why === undefined) throw new Unusable('Say why: --why TEXT.')
    const answer = await ask<ReportedLimit>(
      { method: 'PUT', path, body: { ...keys, why, by, until } },
      live,
      io,
    )
    print(answer, json, io, setText)
    return 0
  },
})

const pathOf = (project: string): string => `/projects/${encodeURIComponent(project)}/overrides`

/** The quota as members of a body. The gateway checks it; only what could not be sent is refused here. */
function keysIn(text: string): object {
  const { data, faults } = parseYaml(text, scalar => ({ value: scalar }))
  if (data === UNLIMITED) return { unlimited: true }
  if (faults.length > 0)
    throw new Unusable(`The quota cannot be read: ${printable(faults[0]?.message ?? '')}`)
  if (typeof data !== 'object' || data === null || Array.isArray(data))
    throw new Unusable(
      'The quota must be the word unlimited, or a map such as "{ burst: 50, sustained: 600 }".',
    )
  const own = Object.keys(data).find(key => OTHERS.includes(key))
  if (own !== undefined) throw new Unusable(`"${own}" is no key of a quota: give it as an option, --${own}.`)
  return data
}

/** Members of the body beside the quota's keys. */
const OTHERS = ['why', 'by', 'until', UNLIMITED]

const nameOf = ({ project, bucket }: ReportedLimit): string => printable(`${bucket} for ${project}`)

function setText(limit: ReportedLimit): string {
  const { project, bucket, quota, until, listed } = limit
  const ends = until === null ? '' : ` until ${until}`
  const unlisted = listed
    ? ''
    : `${printable(project)} is not in projects.yaml: this holds for requests whose credential names it.\n`
  return `${nameOf(limit)}: ${printable(quotaWords(quota))}${ends}. "sluice override undo ${printable(`${project} ${bucket}`)}" goes back to the files.\n${unlisted}`
}

const COLUMNS = columns(['project', 'bucket', 'limit', 'since', 'until', 'by', 'why', 'from'])

function listText(limits: readonly ReportedLimit[], project: string | undefined, width: number): string {
  const who = project === undefined ? 'No project has a' : `${printable(project)} has no`
  if (limits.length === 0) return `${who} negotiated limit.\n`
  const others = limits.flatMap(one =>
    one.without_effect === null ? [] : [`${nameOf(one)} has no effect: ${printable(one.without_effect)}\n`],
  )
  return table(COLUMNS, limits.map(rowOf), width) + others.join('')
}

function rowOf({
  project,
  bucket,
  quota,
  until,
  in_force,
  without_effect,
  src,
  since,
  why,
  by,
}: ReportedLimit) {
  const state = in_force ? '' : without_effect === null ? ' (over)' : ' (no effect)'
  return [
    project,
    bucket,
    quotaWords(quota),
    since === null ? '' : minuteOf(since),
    `${until ?? ''}${state}`,
    by ?? '',
    why ?? '',
    // The path of a limit of the admin port says nothing but its project and bucket.
    since === null ? src : 'admin port',
  ]
}
