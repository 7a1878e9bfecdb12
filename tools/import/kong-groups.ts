/** Which groups a consumer of Kong is in: said by the consumer, by the group, or by `consumer_group_consumers`. */
import type { Section } from './source.js'

const NAMES = ['name', 'username', 'id']

/** What references may call a service, route, consumer or group. */
export const namesOf = (one: Section): string[] => NAMES.flatMap(key => one.text(key) ?? [])

/** The name that a reference such as `service: shop` or `service: { name: shop }` gives. */
export function reference(of: Section, kind: string): string | undefined {
  return of.text(kind) ?? namesOf(of.section(kind))[0]
}

export class KongGroups {
  readonly #named = new Map<string, Section>()
  /** The groups of each name that a consumer may have. */
  readonly #ofMember = new Map<string, Set<Section>>()

  constructor(file: Section) {
    for (const group of file.list('consumer_groups'))
      for (const name of namesOf(group)) this.#named.set(name, group)
    for (const group of file.list('consumer_groups'))
      for (const member of listed(group, 'consumers')) this.#add(member, group)
    for (const pair of file.list('consumer_group_consumers')) {
      const group = this.#named.get(reference(pair, 'consumer_group') ?? '')
      const member = reference(pair, 'consumer')
      if (group !== undefined && member !== undefined) this.#add(member, group)
    }
  }

  #add(member: string, group: Section): void {
    const groups = this.#ofMember.get(member) ?? new Set()
    this.#ofMember.set(member, groups.add(group))
  }

  of(consumer: Section): Section[] {
    const own = listed(consumer, 'groups').flatMap(name => this.#named.get(name) ?? [])
    const others = namesOf(consumer).flatMap(name => [...(this.#ofMember.get(name) ?? [])])
    return [...new Set([...own, ...others])]
  }
}

/** The names in a list of texts or of objects. */
const listed = (of: Section, key: string): string[] => [
  ...of.texts(key).filter(name => name !== '[object Object]'),
  ...of.list(key).flatMap(namesOf),
]
