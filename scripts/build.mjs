/** `npm run build`: compiles the sources and copies their assets to dist/, whether or not they changed. */
import { build } from './lib/build.mjs'
import { script } from './lib/run.mjs'

await script(build)
