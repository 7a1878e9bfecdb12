/**
 * Judges that are not npm packages: each is fetched once into .cache/judges; a missing one is reported in a sentence.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { finish } from '../../test/helpers/launch.js'
import { inProject, onPath, say } from '../lib/run.mjs'

/** Where fetched judges are kept. */
export const CACHE = inProject('.cache', 'judges')
const INSTALL_S = 400

/** The last version that the Go module proxy serves. */
const H2SPEC = 'github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible'
const GRPC = ['client', 'server'].map(name => `google.golang.org/grpc/interop/${name}@v1.60.1`)
const AUTOBAHN = 'autobahntestsuite==25.10.1'

/** A judge that is not available; the message says why. */
export class Missing extends Error {}

/** @returns the h2spec program */
export async function h2spec(): Promise<string> {
  const program = join(CACHE, 'go', 'h2spec')
  if (existsSync(program)) return program
  needs('go', 'h2spec is built with Go: apt-get install golang-go')
  await fetch('h2spec', 'go', ['install', H2SPEC], { GOBIN: join(CACHE, 'go') })
  return program
}

/** @returns the client and the server of gRPC's interoperability test */
export async function grpcInterop() {
  const folder = join(CACHE, 'grpc')
  const programs = { client: join(folder, 'client'), server: join(folder, 'server') }
  if (Object.values(programs).every(existsSync)) return programs
  needs('go', 'the interoperability test of gRPC is built with Go: apt-get install golang-go')
  await fetch('the interoperability test of gRPC', 'go', ['install', ...GRPC], { GOBIN: folder })
  return programs
}

/** @returns the command of Autobahn's wstest, with the arguments and the environment it takes */
export async function wstest() {
  const python = python2()
  if (python === undefined) {
    throw new Missing(
      'the Autobahn test suite runs on Python 2.7 alone, which is not here: pyenv install 2.7.18',
    )
  }
  const env = { PYTHONUSERBASE: join(CACHE, 'autobahn'), PYTHONWARNINGS: 'ignore' }
  const command = { python, args: [join(CACHE, 'autobahn', 'bin', 'wstest')], env }
  const isThere = () => works(python, [...command.args, '--help'], env)
  if (isThere()) return command
  await fetch('the Autobahn test suite', python, ['-m', 'pip', 'install', '--user', '-q', AUTOBAHN], env)
  if (!isThere()) throw new Missing('the Autobahn test suite was installed, but does not run')
  return command
}

/** @returns a Python 3 that has aiohttp, httpx with HTTP/2, and requests */
export async function python3(): Promise<string> {
  const python = join(CACHE, 'py', 'bin', 'python')
  const isThere = () => works(python, ['-c', 'import aiohttp, h2, httpx, requests'])
  if (isThere()) return python
  needs('python3', 'Python clients need Python: apt-get install python3 python3-venv')
  await fetch('a Python environment', 'python3', ['-m', 'venv', join(CACHE, 'py')])
  const libraries = ['aiohttp', 'httpx[http2]', 'requests']
  await fetch(libraries.join(', '), python, ['-m', 'pip', 'install', '-q', ...libraries])
  return python
}

/** Throws Missing with the sentence unless a program is on PATH. */
export function needs(program: string, sentence: string): void {
  if (!onPath(program)) throw new Missing(sentence)
}

async function fetch(what: string, command: string, args: readonly string[], env = {}): Promise<void> {
  say(`fetching ${what} ...`)
  mkdirSync(CACHE, { recursive: true })
  const { code, stderr } = await finish(command, args, { seconds: INSTALL_S, env })
  if (code !== 0) throw new Missing(`${what} could not be fetched: ${stderr.trim().split('\n').at(-1)}`)
}

/** A Python 2.7 with pip: on PATH, or one that pyenv keeps beside its default. */
function python2(): string | undefined {
  const versions = join(process.env.PYENV_ROOT ?? join(homedir(), '.pyenv'), 'versions')
  const found = existsSync(versions) ? readdirSync(versions).filter(name => /^(pypy)?2\.7/.test(name)) : []
  const candidates = ['python2.7', 'python2', ...found.map(name => join(versions, name, 'bin', 'python'))]
  return candidates.find(python =>
    works(python, ['-c', 'import pip, sys; sys.exit(sys.version_info[0] != 2)']),
  )
}

/** True when a command runs and exits with 0. */
function works(command: string, args: readonly string[], env = {}): boolean {
  const options = { env: { ...process.env, ...env }, stdio: 'ignore', timeout: 60_000 } as const
  return spawnSync(command, args, options).status === 0
}
