/** A whole gateway with raw sockets on both sides, to compare what it receives with what it forwards. */
import type { Test } from 'tap'
import { type TestGatewayOptions, testGateway } from '../../helpers/gateway.js'
import { OK, type RawMessage, type RawPeer, rawClient, rawUpstream } from '../../helpers/raw.js'
import { sleep } from '../../helpers/wait.js'

export interface Wire {
  /** Address of the gateway. */
  readonly url: string
  /** What the upstream received since the last call of `answered`. */
  readonly seen: readonly RawMessage[]
  /** The first message in `seen`. */
  first(): RawMessage
  /** What the upstream does with each of its connections from now on. */
  play(script: (peer: RawPeer) => unknown): void
  /** Connects a client to an upstream that answers every request with `answer` and records it in `seen`. */
  answered(t: Test, answer?: string): Promise<RawPeer>
}

/** One gateway for all tests of a file. */
export async function createWire(t: Test, options: Partial<TestGatewayOptions> = {}): Promise<Wire> {
  let script: (peer: RawPeer) => unknown = () => undefined
  let seen: RawMessage[] = []
  const upstream = await rawUpstream(peer => script(peer))
  t.teardown(() => upstream.stop())
  const { url } = await testGateway(t, { upstream: upstream.url, ...options })

  return {
    url,
    get seen() {
      return seen
    },
    first: () => seen[0] as RawMessage,
    play(next) {
      script = next
    },
    async answered(t, answer = OK) {
      for (const { socket } of upstream.connections) socket.destroy()
      seen = []
      script = async peer => {
        for (;;) {
          seen.push(await peer.message())
          peer.send(answer)
        }
      }
      // By then the gateway has noticed that its idle connections are closed.
      await sleep(10)
      const client = await rawClient(Number(new URL(url).port))
      t.teardown(() => client.socket.destroy())
      return client
    },
  }
}
