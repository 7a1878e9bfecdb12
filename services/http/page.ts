/** The frame of every page of the services: one inline style sheet and at most one script, nothing loaded. */
import { createHash } from 'node:crypto'

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

/** What all pages look like. */
const baseStyle = `
:root { color-scheme: light dark; --line: light-dark(#767676, #8f8f8f); }
* { box-sizing: border-box; }
body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; background: light-dark(#f4f5f7, #17181a); color: light-dark(#1b1c1e, #e8e8ea); }
main { max-width: 44rem; margin: 2rem auto; padding: 1.5rem 2rem 2rem; background: light-dark(#fff, #222326); border-radius: .75rem; }
h1 { font-size: 1.5rem; margin: 0 0 1rem; }
a { color: inherit; }
button { padding: .5rem 1rem; font: inherit; font-weight: 600; color: #fff; background: #1f5fd0; border: 0; border-radius: .375rem; cursor: pointer; }
:focus-visible { outline: 3px solid #4c8dff; outline-offset: 2px; }
`

/** What the pages of one kind have in common. */
export interface PageKind {
  /** CSS in addition to that of all pages. */
  readonly style: string
  readonly script?: string
  /** Further directives of the Content-Security-Policy, by name. */
  readonly policy?: Readonly<Record<string, string>>
  readonly referrer: 'no-referrer' | 'same-origin'
}

export interface HtmlPage {
  readonly title: string
  readonly content: Html
  /** By default the title. */
  readonly heading?: string
  readonly language?: string
}

/**
 * A kind of page: its header fields, and the function that writes one. Style and script are allowed by their hashes,
 * so that nothing else can run; a page may not be framed, and posts nowhere unless the policy says so.
 */
export function pageKind({ style, script, policy, referrer }: PageKind) {
  const allStyle = baseStyle + style.trimStart()
  const directives = {
    'default-src': "'none'",
    'style-src': hashOf(allStyle),
    ...(script !== undefined && { 'script-src': hashOf(script) }),
    'form-action': "'none'",
    'base-uri': "'none'",
    'frame-ancestors': "'none'",
    // The empty icon, which keeps browsers from asking for one.
    'img-src': 'data:',
    ...policy,
  }
  const headers: Readonly<Record<string, string>> = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': Object.entries(directives)
      .map(([name, value]) => `${name} ${value}`)
      .join('; '),
    'referrer-policy': referrer,
  }
  const write = ({ title, content, heading = title, language = 'en' }: HtmlPage): string =>
    html`<!doctype html>
<html lang="${language}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${new Html(allStyle)}</style></head>
<body><main>
<h1>${heading}</h1>
${content}
</main>${script === undefined ? undefined : html`\n<script>${new Html(script)}</script>`}</body>
</html>
`.text
  return { headers, write }
}

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
