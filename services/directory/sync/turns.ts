/** Runs work under the same name one after the other, under different names concurrently. */
export type Turns = <Result>(name: string, work: () => Promise<Result>) => Promise<Result>

/** Turns within this process; concurrent work in other processes has to be detected in other ways. */
export function createTurns(): Turns {
  const last = new Map<string, Promise<unknown>>()
  return (name, work) => {
    const previous = last.get(name) ?? Promise.resolve()
    const turn = previous.then(work)
    const settled = turn.catch(() => undefined)
    last.set(name, settled)
    settled.then(() => {
      if (last.get(name) === settled) last.delete(name)
    })
    return turn
  }
}
