/** Database drivers are optional dependencies of the package: unused ones need not be installed. */

/** Loads the adapter that needs the package `driver`. Throws an Error with a sentence when it is not installed. */
export async function loadAdapter<Adapter>(
  driver: 'libsql' | 'mongodb',
  load: () => Promise<Adapter>,
): Promise<Adapter> {
  try {
    return await load()
  } catch (error) {
    // With libsql, it may be only the part for this platform that is missing.
    const { code, message } = error as NodeJS.ErrnoException
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error
    if (!message.includes(driver)) throw error
    const other = driver === 'libsql' ? ' Or set MONGODB_URL to use MongoDB.' : ''
    throw new Error(
      `The package ${driver} is not installed for this platform. Install again without --omit=optional.${other}`,
      { cause: error },
    )
  }
}
