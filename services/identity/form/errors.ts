/** One problem of a submission. `path` is the dot path from `traits`; '' is the whole document. */
export interface FieldError {
  readonly path: string
  readonly code: string
  /** A sentence for people; it never repeats a submitted value. */
  readonly message: string
}

/** Most errors reported at once: enough for any person, too few to make a hostile document costly. */
export const MAX_ERRORS = 200
