/**
 * `npm run nodes [-- VERSION …]`: fast tests, which need no other program, on each Node that package.json allows, or on
 * those. What they run was built on the present one.
 */
import { NODES, withNode } from './lib/nodes.mjs'
import { Failure, say, script } from './lib/run.mjs'
import { runTests, testFiles } from './lib/tests.mjs'

/** Beginnings of paths, of what depends most on Node: parsers, sockets and streams, SQLite, timers. */
const PLACES = [
  ...['test/gateway/http1/', 'test/gateway/http2/', 'test/gateway/listen/', 'test/services/storage/'],
  ...['test/services/directory/scim', 'test/services/directory/store/sqlite'],
]
/** Tests that start another program, and those that try many inputs. */
const SLOW = /helpers\/(?:redis|mongo|browser|nginx|gateway-process|stores|hostile)\.js|redisUrl|mongoUrl/
const SLOW_NAMES = [
  ...['differential', 'control-characters', 'http2-s', 'malformed', 'messages', 'targets', 'tls-terms'],
  ...['callers', 'floods', 'hostile', 'mutated', 'same-', 'search-work', 'size', 'slow-clients'],
]

await script(() => {
  const files = testFiles(
    (path, text) =>
      PLACES.some(place => path.startsWith(place)) &&
      !SLOW.test(text) &&
      !SLOW_NAMES.some(name => path.includes(name)),
  )
  const empty = PLACES.find(place => !files.some(path => path.startsWith(place)))
  if (empty !== undefined) throw new Failure(`scripts/nodes.mjs names ${empty}, where no fast test is`)
  const asked = process.argv.slice(2)
  const unknown = asked.find(version => !NODES.includes(version))
  if (unknown !== undefined) throw new Failure(`${unknown} is none of the versions ${NODES.join(', ')}`)
  for (const version of asked.length > 0 ? asked : NODES) {
    const { node, env } = withNode(version)
    say(`${files.length} test files on Node ${version}`)
    runTests(files, env, `tests fail on Node ${version}; see above`, node)
  }
})
