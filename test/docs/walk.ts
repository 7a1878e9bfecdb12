/** Follows a page block by block in one terminal, and compares the output it shows with what is printed. */
import type { Test } from 'tap'
import { inProject } from '../helpers/root.js'
import { blocksOf, fileOf, firstLine, type PageBlock, placeOf, shownIn } from './blocks.js'
import { patternOf } from './expected.js'
import { NOT_RUN } from './not-run.js'
import { openTerminal, type PageOutput, type PageTerminal, unusedPort } from './terminal.js'

export interface PageWalk extends PageTerminal {
  /** The port used in place of one that the page writes. */
  port(written: number): number
  /** Starts a gateway, and waits until both of its ports answer. */
  serveGateway(command: string): Promise<void>
  /** The page's block that begins with these words, with this walk's ports and dates. */
  shown(words: string): string
}

export interface WalkOptions {
  /** The folder of the package; the checkout's by default. */
  readonly installed?: string
  readonly env?: Readonly<Record<string, string>>
  /** What the reader fills in for placeholders of the page. */
  readonly blanks?: Readonly<Record<string, string>>
  /** Run before a block that contains these words: what the page asks for in prose, or takes for granted. */
  readonly before?: Readonly<Record<string, (walk: PageWalk) => unknown>>
  /** Commands, by their first words, whose output has numbers that vary. */
  readonly numbersVary?: readonly string[]
}

/** Gateways, which run until they are stopped: an `sh` block with one of them is a terminal of its own. */
const SERVES = /\bserve --|^npm start/m
const ADDRESS = /(?<=(?:127\.0\.0\.1|localhost):|listen\(|port: )\d{4,5}\b/g
const DATE = /(?<!\d)20\d\d-\d\d-\d\d(?!\d)/g
/** When the pages were written. They are walked as if that were today: dates since RECENT move along. */
const WRITTEN = Date.UTC(2026, 10, 22)
const RECENT = Date.UTC(2026, 10, 1)
const DAY = 86_400_000
/** One for the whole walk, which midnight may interrupt. */
const SINCE = Math.floor((Date.now() - WRITTEN) / DAY) * DAY

/** Walks through a page. Runs every block of commands, except those that `not-run.ts` gives a reason for. */
export async function walk(t: Test, page: string, options: WalkOptions = {}): Promise<void> {
  const { installed = inProject(), env = {}, blanks = {}, before = {}, numbersVary = [] } = options
  const blocks = blocksOf(page)
  const written = blocks.flatMap(({ text }) => [...text.matchAll(ADDRESS)]).map(([port]) => Number(port))
  const ports = new Map<number, number>()
  for (const port of new Set([8080, 8081, ...written])) ports.set(port, await unusedPort())
  const port = (written: number) => ports.get(written) ?? written
  const here = (text: string) =>
    Object.entries(blanks)
      .reduce((filled, [blank, value]) => filled.replaceAll(blank, value), text)
      .replace(ADDRESS, written => String(port(Number(written))))
      .replace(DATE, day => new Date(movedDay(Date.parse(day))).toISOString().slice(0, 10))
  const terminal = openTerminal(
    t,
    { PORT: String(port(8080)), ADMIN_PORT: String(port(8081)), ...env },
    {
      sluice: `exec '${process.execPath}' '${installed}/dist/gateway/cli.js' "$@"`,
      // The first argument names the package or its command.
      npx: 'case $1 in sluice|sluicegate) shift; exec sluice "$@";; *) exit 127;; esac',
    },
  )
  const shown = (words: string) => here(blocks.find(({ text }) => text.startsWith(words))?.text ?? '')
  const serveGateway = (command: string) => terminal.serve(command, [port(8080), port(8081)])
  const walking: PageWalk = { ...terminal, port, serveGateway, shown }

  const compare = (
    place: string,
    { out, failed }: PageOutput,
    command: string,
    output: string | undefined,
  ) => {
    if (output === undefined) return t.equal(failed, '', `${place}: all commands succeed: ${out}`)
    const varies = numbersVary.some(words => command.startsWith(words))
    const [printed, documented] = [out, here(output)].map(tidied) as [string, string]
    if (patternOf(documented, varies).test(printed)) t.pass(place)
    // Fails, and shows the difference.
    else t.equal(printed, documented, place)
  }

  const waiting = new Set(Object.keys(before))
  for (const [i, block] of blocks.entries()) {
    for (const words of [...waiting].filter(words => block.text.includes(words))) {
      waiting.delete(words)
      await before[words]?.(walking)
    }
    const place = placeOf(block)
    const file = fileOf(block)
    if (block.tag === 'console' && !isNotRun(block)) {
      for (const { command, output } of shownIn(block)) {
        compare(`${place}: ${command.trim()}`, await terminal.run(here(command)), command, output)
      }
    } else if (file !== undefined) {
      await terminal.run(
        `mkdir -p $(dirname ${file}); cat > ${file} << 'END OF FILE'\n${here(block.text)}END OF FILE\n`,
      )
    } else if (block.tag === 'sh' && !isNotRun(block)) {
      const text = here(block.text)
      const [, listening] = /\.listen\((\d+)/.exec(text) ?? []
      if (listening !== undefined) await terminal.serve(text, [Number(listening)])
      else if (SERVES.test(text)) await serveGateway(text)
      else compare(place, await terminal.run(text), text, outputOf(blocks, i))
    }
  }
  t.same([...waiting], [], 'every preparation has been run')
}

export const isNotRun = (block: PageBlock): boolean =>
  NOT_RUN.some(({ page, first }) => page === block.page && firstLine(block).startsWith(first))

/** What the next block shows as this one's output. */
function outputOf(blocks: readonly PageBlock[], i: number): string | undefined {
  const next = blocks[i + 1]
  return next?.tag === 'output' ? next.text : undefined
}

/** Without trailing white space. */
const tidied = (text: string): string => `${text.replace(/[ \t]+$/gm, '').trimEnd()}\n`

/** The day, at midnight UTC, that stands for one which a page names. */
export function movedDay(written: number): number {
  return written < RECENT ? written : written + SINCE
}
