/** `npm run package:check`: checks the npm package with publint and attw, and installs it on each Node it supports. */
import { build } from './lib/build.mjs'
import { checkArchive, withArchive } from './lib/package.mjs'
import { script } from './lib/run.mjs'

await script(() => {
  build()
  withArchive(checkArchive)
})
