/** Runs works of one name one after the other, those of different names side by side. */
export type Turns = <Result>(name: string, work: () => Promise<Result>) => Promise<Result>

/** Turns within this process; what other processes do at the same time has to be noticed otherwise. */
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
