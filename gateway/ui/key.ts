/** Asks for the key of the admin port when it wants one. The key is kept in this tab only. */
import { adminKey } from './api.js'
import { find, setText } from './dom.js'

/** @param retry connects with the key that was given */
export function startKeyPrompt(retry: () => void): void {
  const form = find('key-form') as HTMLFormElement
  form.addEventListener('submit', event => {
    event.preventDefault()
    adminKey.set((find('key') as HTMLInputElement).value.trim())
    setText(find('key-fault'), '')
    retry()
  })
}

/** @param status what the port answered, and `reason` its sentence */
export function promptKey(status: number, reason: string): void {
  const isWrong = adminKey.get() !== ''
  adminKey.set('')
  setText(find('key-fault'), status === 429 ? reason : isWrong ? 'This is not the key of this port.' : '')
  if (!find('key-prompt').hidden) return
  find('key-prompt').hidden = false
  find('key').focus()
}
