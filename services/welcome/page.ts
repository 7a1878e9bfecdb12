/** The content of the welcome page, for browsers and for terminals. */
import { createHash } from 'node:crypto'
import { Html, html } from '../pages/html.js'

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

const STYLE = `
:root { color-scheme: light dark; }
body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; background: light-dark(#f4f5f7, #17181a); color: light-dark(#1b1c1e, #e8e8ea); }
main { max-width: 44rem; margin: 2rem auto; padding: 1.5rem 2rem 2rem; background: light-dark(#fff, #222326); border-radius: .75rem; }
h1 { font-size: 1.5rem; margin: 0 0 1rem; }
h2 { font-size: 1.1rem; margin: 1.5rem 0 .5rem; }
dd { margin: 0 0 .75rem; }
a { color: inherit; }
:focus-visible { outline: 3px solid #4c8dff; outline-offset: 2px; }
code { display: block; padding: .5rem .75rem; border-radius: .375rem; background: light-dark(#eef0f3, #17181a); overflow-wrap: anywhere; }
`
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')

/** The page loads nothing and may not be framed. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
}

export function pageOf(links: Links): string {
  return html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sluice is running</title>
<style>${new Html(STYLE)}</style></head>
<body><main>
<h1>Sluice is running</h1>
<h2>Open</h2>
<dl>
${places(links).map(([url, what]) => html`<dt><a href="${url}">${url}</a></dt><dd>${what}</dd>\n`)}</dl>
<h2>Try in a terminal</h2>
<dl>
${calls(links).map(([call, what]) => html`<dt><code>${call}</code></dt><dd>${what}</dd>\n`)}</dl>
<p>${END}</p>
</main></body>
</html>
`.text
}
