/** An address as it may be shown: without the user and password before its host. */
export const withoutSecret = (address: string): string => address.replace(/\/\/[^/]*@/, '//')
