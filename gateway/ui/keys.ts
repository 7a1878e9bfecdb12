/** The API keys of projects, and when each was last used; nothing where gateway.yaml names no file for them. */
import type { KeyList, ListedKey } from '../admin/key-list.js'
import { SeldomAsked, sentence } from './api.js'
import { find, setText, state } from './dom.js'
import { moment, time } from './format.js'
import { LiveTable } from './table.js'

const never = (at: string | null, word: string) => (at === null ? word : time(at))

export class KeysTable {
  readonly element: HTMLElement
  readonly #table: LiveTable<ListedKey>
  readonly #list = new SeldomAsked<KeyList>('/keys')

  constructor() {
    this.#table = new LiveTable({
      caption: 'API keys',
      id: ({ id }) => id,
      empty: 'There are no keys yet: "sluice keys add" makes one.',
      sortedBy: 'Project',
      columns: [
        { title: 'Project', value: ({ project }) => project, text: ({ project }) => project },
        { title: 'Name', value: ({ name }) => name, text: ({ name }) => name },
        { title: 'Begins with', wide: true, text: ({ prefix }) => `${prefix}…` },
        {
          title: 'State',
          value: ({ state }) => state,
          text: ({ state }) => state,
          paint: (cell, { state: word }) =>
            cell.replaceChildren(state(word === 'active' ? 'good' : 'quiet', word)),
        },
        {
          title: 'Last used',
          value: ({ last_used }) => -Date.parse(last_used ?? '1970-01-01'),
          text: ({ last_used }) => never(last_used, 'not yet'),
          paint(cell, { last_used }) {
            setText(cell, never(last_used, 'not yet'))
            cell.title = last_used === null ? '' : moment(last_used)
          },
        },
        {
          title: 'Expires',
          value: ({ expires }) => expires ?? '~',
          text: ({ expires }) => never(expires, 'never'),
        },
        { title: 'Scopes', wide: true, text: ({ scopes }) => scopes.join(' ') },
      ],
    })
    this.element = this.#table.element
  }

  /** Asks for the keys, unless that was done just now. */
  async update(): Promise<void> {
    try {
      const list = await this.#list.ask()
      if (list === undefined) return
      const { file, trouble, total, keys } = list
      find('keys').hidden = file === null
      find('keys-link').hidden = file === null
      this.#table.update(keys)
      const shown = total > keys.length ? `The first ${keys.length} of ${total}.` : ''
      setText(find('keys-note'), trouble ?? shown)
    } catch (error) {
      setText(find('keys-note'), sentence(error))
    }
  }
}
