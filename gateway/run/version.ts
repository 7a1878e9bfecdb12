import { readFileSync } from 'node:fs'

/** The package's version. */
export function version(): string {
  // From dist/gateway/run, three folders below the package's root.
  const file = new URL('../../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
