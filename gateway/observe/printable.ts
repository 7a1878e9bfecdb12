// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is the point
const CONTROLS = /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/**
 * Text from a log or a file, without characters that move the cursor, change colours or reverse the direction of text.
 */
export function printable(text: string): string {
  return text.replace(CONTROLS, '\ufffd')
}
