/** A whole page: one inline stylesheet, nothing loaded from anywhere. */
import { createHash } from 'node:crypto'
import { Html, html } from '../pages/html.js'
import type { Language } from './languages.js'

const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#767676, #8f8f8f); --bad: light-dark(#b3261e, #ffb4ab); }
* { box-sizing: border-box; }
body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; background: light-dark(#f4f5f7, #17181a); color: light-dark(#1b1c1e, #e8e8ea); }
main { max-width: 34rem; margin: 2rem auto; padding: 1.5rem 2rem 2rem; background: light-dark(#fff, #222326); border-radius: .75rem; }
h1 { font-size: 1.5rem; margin: 0 0 1rem; }
h2 { font-size: 1.1rem; margin: 0 0 .5rem; }
.field { margin: 0 0 1rem; }
label, legend { font-weight: 600; }
label { display: block; }
.check label { display: inline; }
.required { font-weight: 400; color: var(--line); }
input:not([type=checkbox]), select, textarea { width: 100%; padding: .5rem .6rem; font: inherit; color: inherit; background: transparent; border: 1px solid var(--line); border-radius: .375rem; }
select option { color: CanvasText; background: Canvas; }
fieldset { margin: 0 0 1rem; padding: .5rem 1rem 0; border: 1px solid var(--line); border-radius: .5rem; min-width: 0; }
[aria-invalid=true] { border-color: var(--bad) !important; border-width: 2px !important; }
:focus-visible { outline: 3px solid #4c8dff; outline-offset: 2px; }
.hint, .error { margin: 0 0 .25rem; font-size: .9rem; }
.error { color: var(--bad); }
.summary { margin: 0 0 1.5rem; padding: .75rem 1rem; border: 2px solid var(--bad); border-radius: .5rem; }
.notice { margin: 0 0 1.5rem; padding: .75rem 1rem; border: 2px solid var(--line); border-radius: .5rem; }
.summary ul { margin: 0; padding-left: 1.25rem; }
a { color: inherit; }
button { padding: .6rem 1.4rem; font: inherit; font-weight: 600; color: #fff; background: #1f5fd0; border: 0; border-radius: .375rem; cursor: pointer; }
code { overflow-wrap: anywhere; }
`

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')

/** Header fields of every page: it may load nothing, be framed nowhere, and post only to us. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  // Other sites learn nothing; our own posts still carry their origin.
  'referrer-policy': 'same-origin',
}

/** A page with a heading and its content, which is translated already. */
export function renderPage({ tag, say }: Language, title: string, heading: string, content: Html): string {
  return html`<!doctype html>
<html lang="${tag}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${say(title)}</title>
<style>${new Html(STYLE)}</style></head>
<body><main>
<h1>${say(heading)}</h1>
${content}
</main></body>
</html>
`.text
}
