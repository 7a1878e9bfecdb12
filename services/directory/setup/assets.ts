import { createHash } from 'node:crypto'

/**
 * The only style and script of the set-up page. Both are inline and allowed by their hashes, so that nothing else can
 * run.
 */
export const style = `
:root { color-scheme: light dark; --line: light-dark(#767676, #8f8f8f); --good: light-dark(#0b6b2e, #7fdc9b); }
* { box-sizing: border-box; }
body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; background: light-dark(#f4f5f7, #17181a); color: light-dark(#1b1c1e, #e8e8ea); }
main { max-width: 44rem; margin: 2rem auto; padding: 1.5rem 2rem 2rem; background: light-dark(#fff, #222326); border-radius: .75rem; }
h1 { font-size: 1.5rem; margin: 0 0 1rem; }
h2 { font-size: 1.15rem; margin: 1.75rem 0 .5rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 0; padding: 0; list-style: none; }
a { color: inherit; }
a[aria-current] { font-weight: 600; text-decoration-thickness: 3px; }
label { display: block; font-weight: 600; margin-top: .75rem; }
.copy { display: flex; gap: .5rem; }
input { flex: 1; min-width: 0; padding: .5rem .6rem; font: .95rem/1.4 ui-monospace, monospace; color: inherit; background: transparent; border: 1px solid var(--line); border-radius: .375rem; }
button { padding: .5rem 1rem; font: inherit; font-weight: 600; color: #fff; background: #1f5fd0; border: 0; border-radius: .375rem; cursor: pointer; }
:focus-visible { outline: 3px solid #4c8dff; outline-offset: 2px; }
li { margin: .35rem 0; }
.mark { padding: .75rem 1rem; border: 2px solid var(--line); border-radius: .5rem; }
.mark[data-arrived] { border-color: var(--good); color: var(--good); font-weight: 600; }
[hidden] { display: none; }
`

/**
 * Copies by button, and checks every three seconds, for at most an hour of visible time, whether the first user has
 * arrived.
 */
export const script = `
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

const sha256 = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Sent with every page: nothing is loaded from anywhere, and the URL with its token is never sent as a referrer. */
export const pageHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    `style-src ${sha256(style)}`,
    `script-src ${sha256(script)}`,
    'img-src data:',
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
}
