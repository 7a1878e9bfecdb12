/** Elements are created only here, from text and attributes, so that no text from outside can become markup. */

export type Child = Node | string

/**
 * A closed list: none of these attributes can run a script. `href` refers only to places on this page and this port.
 */
export interface ElementAttributes {
  readonly class?: string
  readonly id?: string
  readonly for?: string
  readonly href?: `#${string}` | `/${string}`
  readonly type?: string
  readonly name?: string
  readonly value?: string
  readonly placeholder?: string
  readonly autocomplete?: string
  readonly rows?: string
  readonly scope?: string
  readonly role?: string
  readonly tabindex?: string
  readonly title?: string
  readonly datetime?: string
  readonly spellcheck?: string
  readonly required?: boolean
  readonly disabled?: boolean
  readonly hidden?: boolean
  readonly selected?: boolean
  readonly 'aria-label'?: string
  readonly 'aria-labelledby'?: string
  readonly 'aria-describedby'?: string
  readonly 'aria-live'?: string
  readonly 'aria-pressed'?: string
  readonly 'aria-hidden'?: string
  readonly 'aria-sort'?: string
}

/** A new element; attributes that are undefined or false are left out. */
export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: ElementAttributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue
    element.setAttribute(name, value === true ? '' : value)
  }
  element.append(...children)
  return element
}

type Drawn = 'svg' | 'g' | 'path' | 'line' | 'text' | 'rect' | 'title'

/** A new SVG element. */
export function draw<Tag extends Drawn>(
  tag: Tag,
  attributes: Readonly<Record<string, string | number>> = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[Tag] {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value))
  element.append(...children)
  return element
}

/** The element of index.html with that id. */
export function find(id: string): HTMLElement {
  const element = document.getElementById(id)
  if (element === null) throw new Error(`index.html has no #${id}`)
  return element
}

/** Sets a text only if it differs, so that nothing is redrawn needlessly. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text
}

export function setClass(element: Element, name: string): void {
  if (element.getAttribute('class') !== name) element.setAttribute('class', name)
}

/** A state, shown by its word, its shape and its colour. */
export function state(kind: 'good' | 'warn' | 'bad' | 'quiet', word: string): HTMLElement {
  return make('span', { class: `state ${kind}` }, word)
}

export function button(
  label: string,
  action: () => void,
  attributes: ElementAttributes = {},
): HTMLButtonElement {
  const made = make('button', { type: 'button', ...attributes }, label)
  made.addEventListener('click', action)
  return made
}
