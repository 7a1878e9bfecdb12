/** The cleanup of one part of the run: the `t` that the test helpers take. */
export function scope() {
  const ends = []
  return {
    teardown: end => void ends.push(end),
    /** Runs all teardowns, newest first; throws the first failure once all have run. */
    async end() {
      const failures = []
      for (const end of ends.reverse()) {
        try {
          await end()
        } catch (error) {
          failures.push(error)
        }
      }
      if (failures.length > 0) throw failures[0]
    },
  }
}
