/** Reads the address of the operator's own service from the command line. */
import { connect } from 'node:net'
import { reaches } from '../../config/checks/listen-host.js'
import { isHttpOrigin, originMeantBy } from '../../config/formats.js'
import { Unusable } from '../command.js'
import { printable } from '../text.js'

/** The address in the form used in configurations. @throws {Unusable} with what was probably meant */
export function readUpstream(text: string): string {
  if (isHttpOrigin(text)) return new URL(text).origin
  if (/\/\/[^/]*@/.test(text)) {
    throw new Unusable(
      '--upstream takes no user and password: clients send their own, and the service sees them.',
    )
  }
  const meant = originMeantBy(text)
  const help = meant === undefined ? 'Write it like http://127.0.0.1:3000.' : `Did you mean ${meant}?`
  throw new Unusable(
    `--upstream "${printable(text)}" is not an http:// or https:// address of a host, without a path. ${help}`,
  )
}

const PATIENCE_MS = 1000

/** Whether something accepts connections at the address, within a second. */
export function answers(origin: string): Promise<boolean> {
  const { host, port } = addressOf(origin)
  return new Promise(resolve => {
    const socket = connect(port, host)
    const end = (isThere: boolean) => {
      socket.destroy()
      resolve(isThere)
    }
    socket.setTimeout(PATIENCE_MS, () => end(false))
    socket.on('connect', () => end(true)).on('error', () => end(false))
  })
}

interface Address {
  readonly host: string
  readonly port: number
}

/** Whether requests to an upstream would come to this listener of the gateway. */
export function leadsTo(upstream: string, own: Address): boolean {
  const { host, port } = addressOf(upstream)
  // Port 0 stands for any free one.
  return port !== 0 && port === own.port && reaches(host, own.host)
}

/** Where an http or https URL leads. */
export function addressOf(url: string): Address {
  const { hostname, port, protocol } = new URL(url)
  const standard = protocol === 'https:' ? 443 : 80
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? standard : Number(port) }
}
