/** What was started, and ends with the part of the run it was started for: the `t` of the tests' helpers. */
export function scope() {
  const ends = []
  return {
    teardown: end => void ends.push(end),
    /** Ends all, the youngest first; throws the first failure once all have ended. */
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
