/**
 * Addresses as they may be shown: without the user and password before their host. A password with a slash in it makes no
 * address, so what stands before the last "@" is kept back.
 */
export const withoutSecret = (text: string): string =>
  text.replace(/(?<=\/\/|(?:^|\s)(?!https?:\/\/|unix:))\S*@/g, '')
