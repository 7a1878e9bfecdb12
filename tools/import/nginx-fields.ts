/** Fields that nginx sets on requests, and that a client may set where nobody does (`proxy_set_header`). */
import type { Migration } from './migration.js'
import type { Directive } from './nginx-text.js'

/** Fields that are set or removed here as well, or whose value decides nothing about who asks. */
const HARMLESS =
  /^(host|connection|upgrade|forwarded|x-forwarded-.*|x-real-ip|x-request-id|accept-encoding|user-agent|content-.*|range|if-.*|te|early-data|sec-websocket-.*|referer|origin)$/i

/** The lines that hold in a block: its own, or those around it. */
export function fieldsOf(block: readonly Directive[], outer: readonly Directive[]): readonly Directive[] {
  const own = block.filter(({ name }) => name === 'proxy_set_header')
  return own.length > 0 ? own : outer
}

/** Reports fields of a place with a route that clients could not choose. */
export function reportFields(fields: readonly Directive[], into: Migration): void {
  for (const one of fields) {
    const [name = ''] = one.words
    if (isChosen(one) && into.isNew(`field ${name.toLowerCase()}`)) {
      into.lost(
        one,
        `the field ${name}, which nginx sets or removes. The upstream gets what the client sends in it, and must not believe it.`,
      )
    }
  }
}

/** True for a line whose field a client may choose when it is left out. */
export const isChosen = ({ name, words: [field = '', value = ''] }: Directive): boolean =>
  name === 'proxy_set_header' &&
  !HARMLESS.test(field) &&
  value !== `$http_${field.toLowerCase().replaceAll('-', '_')}`
