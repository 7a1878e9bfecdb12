import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The project's root folder. Tests run from it, compiled or not, so fixtures are found from here. */
export const root = process.cwd()

/** An absolute path inside the project. */
export const inProject = (...parts: string[]): string => join(root, ...parts)

/** The text of one of the project's files. */
export const projectFile = (...parts: string[]): string => readFileSync(inProject(...parts), 'utf8')
