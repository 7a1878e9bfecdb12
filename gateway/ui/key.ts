/** Asks for the key of the admin port when one is required. The key is kept in this tab only. */
import { adminKey } from './api.js'
import { find, setText } from './dom.js'

const WRONG = 'This is not the key for this port.'

/** @param retry connects again with the key that was entered */
export function startKeyPrompt(retry: () => void): void {
  const form = find('key-form') as HTMLFormElement
  form.addEventListener('submit', event => {
    event.preventDefault()
    const given = (find('key') as HTMLInputElement).value.trim()
    const canBeSent = /^[\x21-\x7e]*$/.test(given)
    setText(find('key-fault'), canBeSent ? '' : WRONG)
    if (!canBeSent) return
    adminKey.set(given)
    retry()
  })
}

/** @param status the status of the response, and `reason` its sentence */
export function promptKey(status: number, reason: string): void {
  const isWrong = adminKey.get() !== ''
  adminKey.set('')
  setText(find('key-fault'), status === 429 ? reason : isWrong ? WRONG : '')
  if (!find('key-prompt').hidden) return
  find('key-prompt').hidden = false
  find('key').focus()
}
