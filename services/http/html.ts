/** HTML templates: every value is escaped unless it is already HTML. */

/** Text that is safe to include in a page. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Part = Html | string | number | undefined | readonly Part[]

/** Template tag; undefined renders as nothing, lists are joined. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(strings.map((text, at) => (at < parts.length ? text + written(parts[at]) : text)).join(''))
}

/** Attributes with a leading space; undefined values are left out. */
export function attributes(values: Readonly<Record<string, string | undefined>>): Html {
  const written = Object.entries(values).filter(([, value]) => value !== undefined)
  return new Html(written.map(([name, value]) => ` ${name}="${escaped(value ?? '')}"`).join(''))
}

function written(part: Part): string {
  if (part === undefined) return ''
  if (part instanceof Html) return part.text
  return Array.isArray(part) ? part.map(written).join('') : escaped(String(part))
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, character => ENTITIES[character] as string)
}
