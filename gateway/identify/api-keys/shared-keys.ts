/** Files of API keys that are in use: identifiers share them, and so do the processes of a gateway. */
import type { Log } from '../../types.js'
import { areFilesChecked } from '../checked.js'
import { Newest, sharedClock } from '../newest.js'
import { type InUse, Shared } from '../shared.js'
import { parseKeyFile } from './key-file.js'
import { digestOf, type KeyNews, KeyStore, type ReadKeys, textOf } from './key-store.js'

/** Texts that were read and are not used here, or not yet. */
const known = new Newest<ReadKeys>()
/** What was in force stays known: a later configuration may use it while the file is broken or gone. */
const stores = new Shared<KeyStore>(({ inForce }) => void (inForce && known.add(inForce)))
let tellOthers: (read: ReadKeys) => void = () => undefined

/** @param tell passes on what was read here to the other processes of this gateway */
export function shareKeys(tell: (read: ReadKeys) => void): void {
  tellOthers = tell
}

/** The keys in force whose file may say something else by now: what a new process has to know. */
export function keysInForce(): ReadKeys[] {
  return stores.values.flatMap(store => (store.isCurrent ? [] : (store.inForce ?? [])))
}

/** What another process has read: true if its text is wanted. */
export async function wantsKeys(news: KeyNews): Promise<boolean> {
  return (await stores.get(news.id)?.wants(news)) ?? true
}

/** The file need not be readable any more. False if it is known, or something newer. */
export function learnKeys(read: ReadKeys): boolean {
  return stores.get(read.id)?.learn(read) ?? known.add(read)
}

/** @throws a sentence that says why the file of keys cannot be used */
export function checkKeys(file: string): void {
  if (areFilesChecked()) return
  try {
    // To read many keys at once would stop the requests of a running gateway at each reload.
    if (stores.get(file)?.isCurrent !== true) keepChecked(file)
  } catch (error) {
    throw new Error(`${file} cannot be used: ${(error as Error).message}`)
  }
}

/** What was found right counts, even if the file says something else a moment later. */
function keepChecked(file: string): void {
  const begun = sharedClock()
  const text = textOf(file)
  parseKeyFile(text)
  if (stores.get(file) === undefined) known.add({ id: file, text, digest: digestOf(text), begun })
}

/** The keys of a file for one more user, who must release them. */
export function useKeys(file: string, log: Log): InUse<KeyStore> {
  return stores.use(file, () => new KeyStore(file, log, tellOthers, known.take(file)))
}

/** When each key was last used in this process, by id; in ms since the epoch. */
export function keyUses(): [string, number][] {
  return stores.values.flatMap(({ used }) => [...used])
}
