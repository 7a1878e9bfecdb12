/** The pages of self-service. */
import type { Html } from '../../http/page.js'
import { pageKind } from '../../http/page.js'
import type { Language } from '../languages.js'

const pages = pageKind({
  style: `
:root { --bad: light-dark(#b3261e, #ffb4ab); }
main { max-width: 34rem; }
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
.hint, .error { margin: 0 0 .25rem; font-size: .9rem; }
.error { color: var(--bad); }
.summary { margin: 0 0 1.5rem; padding: .75rem 1rem; border: 2px solid var(--bad); border-radius: .5rem; }
.notice { margin: 0 0 1.5rem; padding: .75rem 1rem; border: 2px solid var(--line); border-radius: .5rem; }
.summary ul { margin: 0; padding-left: 1.25rem; }
button { padding: .6rem 1.4rem; font: inherit; font-weight: 600; color: #fff; background: #1f5fd0; border: 0; border-radius: .375rem; cursor: pointer; }
code { overflow-wrap: anywhere; }
`,
  policy: { 'form-action': "'self'" },
  // Other sites learn nothing; our own posts still carry their origin.
  referrer: 'same-origin',
})

export const PAGE_HEADERS = pages.headers

/** A page with a heading and its content, which is translated already. */
export function renderPage({ tag, say }: Language, title: string, heading: string, content: Html): string {
  return pages.write({ title: say(title), heading: say(heading), content, language: tag })
}
