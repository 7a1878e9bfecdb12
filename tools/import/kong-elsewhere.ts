/** Routes of Kong whose requests reach no upstream, or reach it with another path only; and fields that Kong sets. */
import type { Place } from './doors.js'
import type { KongRoute } from './kong-route.js'
import type { Migration } from './migration.js'
import { isConfined } from './paths.js'
import type { Section } from './source.js'

/** Where the requests go of a route whose service has no address here. */
export const nowhere = (service: Section | undefined): string =>
  service === undefined ? 'of no service' : `sent to the service "${service.text('name') ?? ''}"`

/** Where the requests of a place go if not to its upstream with the path they came with; undefined when there. */
export function sentElsewhere({ section, service, plugins }: KongRoute, place: Place): string | undefined {
  const uri = transformersOf(plugins)
    .map(config => config.section('replace').text('uri'))
    .find(text => text !== undefined)
  if (uri !== undefined) return `sent on as ${uri}`
  if (place.kind === 'prefix' && isExpression(section, place)) return 'matched by a regular expression'
  const base = basePathOf(service)
  const isWhole = section.node.strip_path === false && base !== ''
  return isWhole || isConfined({ ...place, kind: 'prefix' }, base) ? `sent on below ${base}` : undefined
}

/** The text that an expression begins with is no condition of its own: these paths are the route's. */
const isExpression = (section: Section, { path }: Place): boolean =>
  path !== '/' && section.texts('paths').length > 0 && !section.texts('paths').includes(path)

/** The path that a service puts before that of the request. */
function basePathOf(service: Section | undefined): string {
  const url = service?.text('url') ?? ''
  const path = service?.text('path') ?? (URL.canParse(url) ? new URL(url).pathname : '')
  return path.replace(/\/$/, '')
}

/** Reports fields that a transformer sets or removes, and that a client may set where nobody does. */
export function reportFields({ plugins }: Pick<KongRoute, 'plugins'>, into: Migration): void {
  for (const config of transformersOf(plugins)) {
    for (const how of ['add', 'append', 'replace', 'remove', 'rename']) {
      for (const written of config.section(how).texts('headers')) {
        const [name = ''] = written.split(':')
        if (!into.isNew(`field ${name.toLowerCase()}`)) continue
        into.lost(
          config.section(how).at('headers'),
          `the field ${name}, which Kong sets or removes. The upstream gets what the client sends in it, and must not believe it.`,
        )
      }
    }
  }
}

/** Reports the fields in which a plugin tells the upstream who asks. */
export function reportConsumerFields(keyAuth: Section, into: Migration): void {
  into.lost(
    keyAuth.at(),
    'the fields X-Consumer-ID, X-Consumer-Username, X-Consumer-Custom-ID, X-Consumer-Groups, X-Credential-Identifier and X-Anonymous-Consumer, which Kong sets or removes. The upstream gets what the client sends in them, and must not believe it.',
  )
}

const transformersOf = (plugins: readonly Section[]): Section[] =>
  plugins.flatMap(one =>
    /^request-transformer(-advanced)?$/.test(one.text('name') ?? '') ? one.section('config') : [],
  )
