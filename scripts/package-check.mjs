/** `npm run package:check`: the npm package, judged by publint and attw, and installed on each Node it supports. */
import { build } from './lib/build.mjs'
import { checkArchive, withArchive } from './lib/package.mjs'
import { script } from './lib/run.mjs'

await script(async () => {
  build()
  await withArchive(checkArchive)
})
