/** When two user names count as one, in the directory and in the identity service. */

/** Characters that show nothing: soft hyphens, zero-width and direction marks, variation selectors; and controls. */
const invisible = /[\p{Default_Ignorable_Code_Point}\p{Cc}]/gu

/** Most names. */
const plain = /^[\x21-\x7e]*$/

/** Version of `foldLoginName`: what was made with an older one has to be made anew. */
export const foldVersion = 1

/**
 * The form in which user names are compared. Names that look alike by Unicode's means alone share it: letter case
 * (full case folding, so ß is ss and all three sigmas are one), compatibility forms (full width, ligatures, long s),
 * composed and decomposed letters, invisible characters, and blanks at the ends or in a row. This is
 * NFKC_Casefold (Unicode, section 3.13) with blanks folded too. Letters of different scripts that look alike stay
 * apart.
 */
export function foldLoginName(name: string): string {
  if (plain.test(name)) return name.toLowerCase()
  // Folding can produce text that needs it again, such as a decomposed letter after a mark that was removed.
  const once = foldOnce(foldOnce(name.normalize('NFD')))
  return once.replace(/\s+/gu, ' ').trim()
}

const foldOnce = (text: string): string =>
  text.normalize('NFKC').replace(invisible, '').split('ı').map(foldCase).join('ı').normalize('NFKC')

/** Without the dotless i: its upper case is a plain I, but the two are different letters. */
const foldCase = (text: string): string =>
  // A sigma's lower case depends on its neighbours.
  text.toLowerCase().toUpperCase().toLowerCase().replaceAll('ς', 'σ')
