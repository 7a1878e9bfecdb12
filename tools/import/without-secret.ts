/**
 * An address that may be shown: without the user and password before its host. A password with a slash does not parse
 * as part of an address, so everything before the last "@" is removed.
 */
export const withoutSecret = (text: string): string =>
  text.replace(/(?<=\/\/|(?:^|\s)(?!https?:\/\/|unix:))\S*@/g, '')
