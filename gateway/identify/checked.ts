/**
 * Whether the files that identifiers name are checked when a configuration is opened. A worker opens what the supervisor has
 * checked: by then a file may say something else, or be gone, and what it said last stays in force.
 */
let areChecked = false

/** Another process of this gateway checks the files of each configuration that this one opens. */
export function trustChecks(): void {
  areChecked = true
}

/** True where another process has checked them. */
export const areFilesChecked = (): boolean => areChecked
