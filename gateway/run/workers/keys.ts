/** How the processes of a gateway tell each other which API keys are in force. */
import type { KeyNews, ReadKeys } from '../../identify/api-keys/key-store.js'
import type { Channel } from './channel.js'

/** Calls that each process answers. */
export interface KeyCalls {
  /** Another process has read a file of keys: true if its text is wanted. */
  wantsKeys(news: KeyNews): Promise<boolean>
  learnKeys(read: ReadKeys): void
}

/** The other process usually reads the same file by itself: a text of megabytes is sent only if it cannot. */
export function tellKeys(channel: Channel<KeyCalls>, { text, ...news }: ReadKeys): void {
  channel
    .ask('wantsKeys', news)
    .then(isWanted => (isWanted ? channel.ask('learnKeys', { text, ...news }) : undefined))
    // A process that has ended needs no keys.
    .catch(() => undefined)
}
