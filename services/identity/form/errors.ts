/** One problem of a submission. `path` is the dot path from `traits`; '' is the whole document. */
export interface FieldError {
  readonly path: string
  readonly code: string
  /** A sentence for people; it never repeats a submitted value. */
  readonly message: string
}
