import { pageKind } from '../../http/page.js'

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
export const setupPages = pageKind({
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
