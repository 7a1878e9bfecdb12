/** What `npm start` and `npm test` call first: installs and builds what is missing or stale, else costs nothing. */
import { Failure, say, script } from './lib/run.mjs'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

await script(async () => {
  if (major < 20 || (major === 20 && minor < 19)) {
    throw new Failure(`Node ${process.versions.node} is too old; install Node 20.19 or newer`)
  }
  const { install, isInstalled } = await import('./lib/install.mjs')
  const { build, isBuilt } = await import('./lib/build.mjs')
  if (!isInstalled()) {
    say('the first start takes about a minute, later ones a second')
    say('installing dependencies with npm ci ...')
    install()
  }
  if (!isBuilt()) {
    say('building dist/, about half a minute ...')
    build()
  }
})
