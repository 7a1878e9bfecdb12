/** A text of the configuration that no answer, log or message may show. */
import { inspect } from 'node:util'

/** Whatever prints it, or writes it as JSON, shows `shown` instead of the text. */
export class Hidden {
  readonly shown: string
  readonly #text: string

  constructor(text: string, shown: string) {
    this.#text = text
    this.shown = shown
  }

  /** The text itself. */
  reveal(): string {
    return this.#text
  }

  toString(): string {
    return this.shown
  }

  toJSON(): string {
    return this.shown
  }

  [inspect.custom](): string {
    return this.shown
  }
}

/** Which part of a text may be shown: of a secret nothing, of an address where it leads. */
export type HiddenAs = 'secret' | 'address'

/** An address may contain a token in its path or query, as those of chat services do. */
export function hidden(text: string, as: HiddenAs): Hidden {
  if (as === 'secret') return new Hidden(text, '(hidden)')
  const { origin, pathname, search } = new URL(text)
  return new Hidden(text, pathname === '/' && search === '' ? origin : `${origin}/…`)
}
