/** Where requests go, as gateway.yaml says. */
import type { ListedRoute, RouteList } from '../admin/route-list.js'
import { SeldomAsked, sentence } from './api.js'
import { find, setText } from './dom.js'
import { LiveTable } from './table.js'

export class RoutesTable {
  readonly element: HTMLElement
  readonly #table: LiveTable<ListedRoute>
  readonly #list = new SeldomAsked<RouteList>('/routes')

  constructor() {
    this.#table = new LiveTable({
      caption: 'Where requests go, by host and path',
      id: ({ host, path }) => `${host} ${path}`,
      empty: 'There is no route, so every request is answered 404.',
      columns: [
        { title: 'Host', value: hostText, text: hostText },
        { title: 'Path', value: ({ path }) => path, text: ({ path }) => path },
        { title: 'To', value: ({ to }) => to, text: ({ to }) => to },
        { title: 'Prefix', wide: true, text: prefixText },
        { title: 'Credential', text: credentialText },
        { title: 'CORS', wide: true, text: ({ cors }) => cors.join(' ') },
      ],
    })
    this.element = this.#table.element
  }

  /** Asks for the routes, unless that was done just now. */
  async update(): Promise<void> {
    try {
      const list = await this.#list.ask()
      if (list === undefined) return
      const { total, routes } = list
      this.#table.update(routes)
      setText(find('routes-note'), total > routes.length ? `The first ${routes.length} of ${total}.` : '')
    } catch (error) {
      setText(find('routes-note'), sentence(error))
    }
  }
}

const hostText = ({ host }: ListedRoute) => host ?? 'any'

function prefixText({ strip_prefix: strip, add_prefix: add }: ListedRoute): string {
  return [strip && `without ${strip}`, add && `behind ${add}`].filter(Boolean).join(', ')
}

function credentialText({ auth, scopes }: ListedRoute): string {
  return [auth === 'required' ? auth : '', ...scopes].filter(Boolean).join(' ')
}
