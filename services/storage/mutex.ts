/** Runs work on one key one after the other, on different keys concurrently. */
export type Mutex = <Result>(key: string, work: () => Promise<Result>) => Promise<Result>

/** A mutex within this process; concurrent work of other processes has to be detected in other ways. */
export function createMutex(): Mutex {
  const last = new Map<string, Promise<unknown>>()
  return (key, work) => {
    const result = (last.get(key) ?? Promise.resolve()).then(work)
    const settled = result.catch(() => undefined)
    last.set(key, settled)
    settled.then(() => {
      if (last.get(key) === settled) last.delete(key)
    })
    return result
  }
}
