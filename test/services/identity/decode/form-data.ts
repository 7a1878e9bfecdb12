/** What a browser submits for our own HTML when nothing was filled in (WHATWG HTML, "constructing the entry list"). */
export function formData(page: string): [string, string][] {
  const entries: [string, string][] = []
  const control = /<input([^>]*)>|<select([^>]*)>(.*?)<\/select>|<textarea([^>]*)>\n?(.*?)<\/textarea>/gs
  for (const [, input, select, options, textarea, text] of page.matchAll(control)) {
    if (input !== undefined) {
      const given = attributesOf(input)
      if (given.type === 'checkbox' && given.checked === undefined) continue
      entries.push([given.name ?? '', given.value ?? ''])
    } else if (select !== undefined) {
      const all = [...(options ?? '').matchAll(/<option([^>]*)>/g)].map(([, option]) =>
        attributesOf(option ?? ''),
      )
      const chosen = all.find(option => option.selected !== undefined) ?? all[0]
      entries.push([attributesOf(select).name ?? '', chosen?.value ?? ''])
    } else entries.push([attributesOf(textarea ?? '').name ?? '', unescaped(text ?? '')])
  }
  return entries
}

/** Attributes of the first tag with this name. */
export function tag(
  page: string,
  name: string,
  type = 'input|select|textarea',
): Record<string, string> | undefined {
  for (const [, written] of page.matchAll(new RegExp(`<(?:${type})\\b([^>]*)>`, 'g'))) {
    const given = attributesOf(written ?? '')
    if (given.name === name && given.type !== 'hidden') return given
  }
  return undefined
}

function attributesOf(written: string): Record<string, string> {
  return Object.fromEntries(
    [...written.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name, value]) => [name, unescaped(value ?? '')]),
  )
}

function unescaped(text: string): string {
  const entities: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' }
  return text.replace(/&(lt|gt|quot|#39|amp);/g, (_, name: string) => entities[name] as string)
}
