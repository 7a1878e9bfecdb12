/** HTML templates: every value is escaped unless it is already markup. */
export class Markup {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type MarkupPart = Markup | string | undefined | readonly MarkupPart[]

/** Template tag; undefined renders as nothing, lists are joined. */
export function markup(strings: TemplateStringsArray, ...parts: readonly MarkupPart[]): Markup {
  return new Markup(strings.map((text, at) => (at < parts.length ? text + textOf(parts[at]) : text)).join(''))
}

function textOf(part: MarkupPart): string {
  if (part === undefined) return ''
  if (part instanceof Markup) return part.text
  return typeof part === 'string' ? escaped(part) : part.map(textOf).join('')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, sign => entities[sign] ?? '')
