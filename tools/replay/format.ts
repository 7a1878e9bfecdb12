/** Detects the format of a log. */
import { didYouMean } from '../arguments.js'
import { Unusable } from '../command.js'
import type { LineReader, Unread } from '../log/read.js'
import { combined, envoy, mapped, readMapping } from './access-logs.js'
import { decisionRecords, type Sampling } from './records.js'
import type { Format, Traffic } from './traffic.js'

export interface FormatOptions {
  readonly format: string
  readonly map: readonly string[]
  readonly host: string | undefined
}

const NAMES = ['auto', 'records', 'combined', 'envoy', 'json']

/** Reads the lines of one file. Unless the format is named, the first readable line decides it. */
export class FormatReader {
  readonly #formats: readonly Format[]
  /** The formats that were found. */
  readonly found = new Set<Format>()

  /** @throws {Unusable} when the options do not fit together */
  constructor({ format, map, host }: FormatOptions, sampling: Sampling) {
    if (!NAMES.includes(format)) {
      const help = didYouMean(format, NAMES) || ` It may be ${NAMES.join(', ')}.`
      throw new Unusable(`There is no format "${format}".${help}`)
    }
    if (map.length > 0 && format !== 'auto' && format !== 'json') {
      throw new Unusable(`--map is for logs in JSON, not for the format ${format}.`)
    }
    if (format === 'json' && map.length === 0) {
      throw new Unusable(
        '--format json needs --map for its fields, such as --map time=ts --map method=verb --map path=url.',
      )
    }
    const all =
      map.length > 0
        ? [mapped(readMapping(map), host)]
        : [decisionRecords(sampling), combined(host), envoy(host)]
    this.#formats = all.filter(({ name }) => format === 'auto' || name === format)
  }

  /** A reader for one file. */
  reader(): LineReader<Traffic> {
    let format: Format | undefined = this.#formats.length === 1 ? this.#formats[0] : undefined
    return line => {
      if (format !== undefined) {
        const read = format.read(line)
        if (read !== undefined && !('trouble' in read)) this.found.add(format)
        return read
      }
      let unread: Unread | undefined
      for (const candidate of this.#formats) {
        const read = candidate.read(line)
        if (read === undefined) continue
        if ('trouble' in read) {
          unread ??= read
          continue
        }
        format = candidate
        this.found.add(candidate)
        return read
      }
      return unread
    }
  }
}
