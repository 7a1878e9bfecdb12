/** Files of keys: which of them may be opened, and how a change is noticed. */
import type { Stats } from 'node:fs'
import { markOfFile } from '../../config/marks.js'

/** A mark that changes when the file does. @throws a sentence that says why the file must not be opened */
export function checkedMark(found: Stats, mostBytes: number): string {
  // To open a FIFO would wait for somebody to write to it.
  if (!found.isFile()) throw new Error(`It is ${found.isDirectory() ? 'a folder' : 'not a regular file'}.`)
  if (found.size > mostBytes) throw new Error(`The file has more than ${mostBytes} bytes.`)
  return markOfFile(found)
}
