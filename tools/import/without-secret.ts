/**
 * An address that may be shown: without the user and password before its host. A password with a slash does not parse
 * as part of an address, so everything before the last "@" is removed.
 */
export const withoutSecret = (text: string): string =>
  text.replace(/\S+/g, word => {
    const slashes = word.indexOf('//')
    const begin = !/^(?:https?:\/\/|unix:)/.test(word) ? 0 : slashes < 0 ? word.length : slashes + 2
    const end = word.lastIndexOf('@') + 1
    return end > begin ? word.slice(0, begin) + word.slice(end) : word
  })
