import { Html, html, pageKind } from '../../http/page.js'
import { providers, type SetupProvider } from './steps.js'

const style = `
:root { --good: light-dark(#0b6b2e, #7fdc9b); }
h2 { font-size: 1.15rem; margin: 1.75rem 0 .5rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 0; padding: 0; list-style: none; }
a[aria-current] { font-weight: 600; text-decoration-thickness: 3px; }
label { display: block; font-weight: 600; margin-top: .75rem; }
.copy { display: flex; gap: .5rem; }
input { flex: 1; min-width: 0; padding: .5rem .6rem; font: .95rem/1.4 ui-monospace, monospace; color: inherit; background: transparent; border: 1px solid var(--line); border-radius: .375rem; }
li { margin: .35rem 0; }
.mark { padding: .75rem 1rem; border: 2px solid var(--line); border-radius: .5rem; }
.mark[data-arrived] { border-color: var(--good); color: var(--good); font-weight: 600; }
[hidden] { display: none; }
`

/**
 * Copies by button, and checks every three seconds, for at most an hour of visible time, whether the first user has
 * arrived.
 */
const script = `
for (const button of document.querySelectorAll('button[data-copy]')) {
  button.hidden = false
  button.addEventListener('click', async () => {
    const field = document.getElementById(button.dataset.copy)
    field.select()
    try {
      await navigator.clipboard.writeText(field.value)
    } catch {
      document.execCommand('copy')
    }
    document.getElementById('copied').textContent = field.labels[0].textContent + ' copied'
  })
}
const mark = document.getElementById('mark')
if (mark && !('arrived' in mark.dataset)) {
  document.getElementById('reload').hidden = true
  let left = 1200
  const timer = setInterval(async () => {
    if (document.hidden) return
    if (--left === 0) clearInterval(timer)
    try {
      const answer = await fetch(mark.dataset.status, { cache: 'no-store' })
      const { first_user_at } = await answer.json()
      if (!first_user_at) return
      clearInterval(timer)
      mark.dataset.arrived = ''
      mark.textContent = 'The first user arrived. The connection works.'
    } catch {}
  }, 3000)
}
`

/** The set-up page. The URL with its token is never sent as a referrer. */
const setupPages = pageKind({
  style,
  script,
  policy: { 'connect-src': "'self'", 'form-action': "'self'" },
  referrer: 'no-referrer',
})

/** Sent with every answer of the set-up page. */
export const setupHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': setupPages.headers['content-security-policy'] ?? '',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
}

/** What the page shows of a directory. */
export interface SetupPage {
  readonly name: string
  readonly provider: SetupProvider
  /** The SCIM base address. */
  readonly endpoint: string
  readonly link: string
  /** The SCIM secret, only in a response that shows it. */
  readonly secret: string | undefined
  /** When the link showed it (ISO 8601); undefined before that. */
  readonly shownAt: string | undefined
  /** The link cannot make any more tokens. */
  readonly isSpent: boolean
  /** Requests from the provider are refused at present. */
  readonly deactivated: boolean
  /** When the first user arrived (ISO 8601); undefined before that. */
  readonly firstUserAt: string | undefined
}

/** The set-up page. Without scripts all of it works except the copy buttons and the status that updates by itself. */
export function renderSetupPage(page: SetupPage): string {
  const { name, provider, endpoint, link } = page
  const at = (path: string, key = provider.key): string =>
    `${path}?${new URLSearchParams({ link, provider: key })}`
  return whole(
    `Connect ${name}`,
    html`<nav aria-label="Your identity provider"><ul>${providers.map(
      ({ key, name: of }) =>
        html`<li><a href="${at('page', key)}"${key === provider.key ? new Html(' aria-current="page"') : undefined}>${of}</a></li>`,
    )}</ul></nav>
${page.deactivated ? html`<p class="mark">This connection is switched off: ${provider.name} will be refused (403). Ask the person who sent you this link to switch it on.</p>` : undefined}
<h2>What ${provider.name} needs</h2>
${field('endpoint', 'Base URL', endpoint)}
${secretPart(page, at)}
<p id="copied" role="status"></p>
<h2>Steps in ${provider.name}</h2>
<ol>${provider.steps.map(step => html`<li>${emphasized(step)}</li>`)}</ol>
<p>${provider.outcome}</p>
<h2>Did it work?</h2>
${
  page.firstUserAt
    ? html`<p class="mark" id="mark" data-arrived role="status">The first user arrived. The connection works.</p>`
    : html`<p class="mark" id="mark" role="status" data-status="${at('status')}">Waiting for the first user.</p>
<p id="reload"><a href="${at('page')}">Look again</a></p>`
}`,
  )
}

/** The page for a request that is refused, such as one with an expired link. */
export const renderRefusal = (sentence: string): string =>
  whole('This page cannot be shown', html`<p>${sentence}</p>`)

const whole = (title: string, content: Html): string => setupPages.write({ title, content })

const field = (id: string, label: string, value: string): Html =>
  html`<label for="${id}">${label}</label>
<div class="copy"><input id="${id}" value="${value}" readonly spellcheck="false"><button type="button" data-copy="${id}" aria-label="Copy the ${label}" hidden>Copy</button></div>`

function secretPart({ secret, shownAt, isSpent }: SetupPage, at: (path: string) => string): Html {
  if (secret !== undefined) {
    return html`${field('secret', 'Token', secret)}
<p>Copy it now: it is not shown again.</p>`
  }
  if (shownAt === undefined) {
    return html`<form method="post" action="${at('token')}"><p>The token is shown once. <button>Show the token</button></p></form>`
  }
  const shown = html`<p>The token was shown on ${shownAt.slice(0, 10)} at ${shownAt.slice(11, 16)} UTC, and is not shown again.</p>`
  if (isSpent)
    return html`${shown}
<p>This link cannot create more tokens: ask the person who sent it for a new link.</p>`
  return html`${shown}
<form method="post" action="${at('new-token')}"><p>Lost it? If you create a new one, the old one still works for a day. <button>Create a new token</button></p></form>`
}

/** Emphasises the words between asterisks. */
const emphasized = (step: string): (Html | string)[] =>
  step.split('*').map((words, index) => (index % 2 === 1 ? html`<strong>${words}</strong>` : words))
