/** Why an address cannot be listened on, as a sentence that says which setting to change. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { Failure } from '../errors.js'

interface Address {
  readonly host: string
  readonly port: number
}

/** What the address was set by: a section of gateway.yaml, or the options of a command. */
type Setting = 'listen' | 'redirect' | 'admin' | 'options'

/** For `catch`. @throws {Failure} or the original error */
export function listenFault(setting: Setting, address: Address): (error: unknown) => never {
  return error => {
    const sentence = sentenceOf(setting, address, (error as NodeJS.ErrnoException).code)
    throw sentence === undefined ? error : new Failure(sentence, { cause: error })
  }
}

const NAMES = {
  listen: { host: 'listen.host', port: 'listen.port in gateway.yaml, or PORT where it says so' },
  redirect: { host: 'listen.host', port: 'listen.redirectHttp in gateway.yaml' },
  admin: { host: 'admin.host', port: 'admin.port in gateway.yaml, or ADMIN_PORT where it says so' },
  options: { host: '--host', port: '--port' },
}

function sentenceOf(setting: Setting, { host, port }: Address, code = ''): string | undefined {
  const names = NAMES[setting]
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} on ${host} is in use${ownerText(port)}. Choose another (${names.port}).`
    case 'EACCES':
      return `This user may not listen on port ${port}. Choose one above 1023 (${names.port}).`
    case 'EADDRNOTAVAIL':
    case 'EINVAL': // An interface of an IPv6 address that does not exist.
      return `${names.host}: ${host} is no address of this machine.`
    case 'ENOTFOUND':
      return `${names.host}: no address is known for "${host}".`
    default:
      return undefined
  }
}

function ownerText(port: number): string {
  const pid = ownerOf(port)
  if (pid === undefined) return ''
  // In a worker, the parent process holds the admin port.
  if (pid === process.pid || (process.connected && pid === process.ppid))
    return ' by this gateway itself: its ports must differ'
  const owner = ` by ${readFileSync(`/proc/${pid}/comm`, 'utf8').trim()} (process ${pid})`
  // Such as a worker whose supervisor was killed: it cannot end by itself.
  return isStopped(pid) ? `${owner}, which is stopped: "kill -KILL ${pid}" ends it` : owner
}

/** Whether a process is stopped, as by SIGSTOP: the state follows the name, which is in brackets. */
function isStopped(pid: number): boolean {
  return /\) [Tt] [^)]*$/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
}

/** The process that listens on a TCP port, if Linux (proc(5)) shows it to this user. */
function ownerOf(port: number): number | undefined {
  try {
    const sockets = new Set(['tcp', 'tcp6'].flatMap(table => listenersOn(port, table)))
    return readdirSync('/proc')
      .filter(name => /^\d+$/.test(name))
      .map(Number)
      .find(pid => filesOf(pid).some(file => sockets.has(file)))
  } catch {
    return undefined
  }
}

const LISTENING = '0A'

/** Sockets listening on a port, in the form of the links in /proc/PID/fd. */
function listenersOn(port: number, table: string): string[] {
  const file = `/proc/net/${table}`
  // The table tcp6 does not exist where IPv6 is disabled.
  const [, ...lines] = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
  return lines.flatMap(line => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/)
    const isOurs = state === LISTENING && Number.parseInt(local.split(':')[1] ?? '', 16) === port
    return isOurs ? `socket:[${inode}]` : []
  })
}

function filesOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap(fd => linkOf(`/proc/${pid}/fd/${fd}`))
  } catch {
    return []
  }
}

function linkOf(path: string): string[] {
  try {
    return [readlinkSync(path)]
  } catch {
    return []
  }
}
