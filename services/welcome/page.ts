/** The content of the welcome page, for browsers and for terminals. */
import { html } from '../http/html.js'
import { pageKind } from '../http/page.js'

/** Origins, without a trailing slash. */
interface Links {
  readonly here: string
  readonly admin: string
}

const places = ({ here, admin }: Links): readonly (readonly [url: string, what: string])[] => [
  [`${here}/self-service/registration`, 'a registration form, made from a JSON Schema'],
  [`${here}/api/v1/docs`, 'the API of the directory (SCIM in, webhooks out)'],
  [`${admin}/ui/`, 'what the gateway decides, counts and measures'],
]

const calls = ({ here, admin }: Links): readonly (readonly [call: string, what: string])[] => [
  [`curl -i ${here}/sessions/whoami`, 'RateLimit says what is left'],
  [
    `for i in $(seq 11); do curl -s -o /dev/null -w '%{http_code} ' ${here}/sessions/whoami; done`,
    'the last one is refused',
  ],
  [`npx sluice explain GET /sessions/whoami --live ${admin}`, 'why'],
  ['npx sluice serve --upstream http://127.0.0.1:3000 --limit 100/m', 'a service of your own'],
]

const END =
  'This page is the upstream "welcome" of gateway.yaml. Remove its route when something of your own answers here.'

export function textOf(links: Links): string {
  const part = (pairs: readonly (readonly [string, string])[]) =>
    pairs.map(([first, what]) => `  ${first}\n      ${what}\n`).join('')
  return `Sluice is running.\n\nOpen:\n${part(places(links))}\nTry:\n${part(calls(links))}\n${END}\n`
}

const pages = pageKind({
  style: `
h2 { font-size: 1.1rem; margin: 1.5rem 0 .5rem; }
dd { margin: 0 0 .75rem; }
code { display: block; padding: .5rem .75rem; border-radius: .375rem; background: light-dark(#eef0f3, #17181a); overflow-wrap: anywhere; }
`,
  referrer: 'no-referrer',
})

export const PAGE_HEADERS = pages.headers

export function pageOf(links: Links): string {
  const content = html`<h2>Open</h2>
<dl>
${places(links).map(([url, what]) => html`<dt><a href="${url}">${url}</a></dt><dd>${what}</dd>\n`)}</dl>
<h2>Try in a terminal</h2>
<dl>
${calls(links).map(([call, what]) => html`<dt><code>${call}</code></dt><dd>${what}</dd>\n`)}</dl>
<p>${END}</p>`
  return pages.write({ title: 'Sluice is running', content })
}
