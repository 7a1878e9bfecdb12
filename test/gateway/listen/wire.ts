/** A whole gateway with raw sockets on both sides: what it is sent, and what it sends on. */
import type { Test } from 'tap'
import { type TestGatewayOptions, testGateway } from '../../helpers/gateway.js'
import { OK, type RawMessage, type RawPeer, rawClient, rawUpstream } from '../../helpers/raw.js'
import { sleep } from '../../helpers/wait.js'

export interface Wire {
  /** Address of the gateway. */
  readonly url: string
  /** What the upstream received since the last call of `answered`. */
  readonly seen: readonly RawMessage[]
  /** The first of them. */
  first(): RawMessage
  /** What the upstream does with each of its connections from now on. */
  play(script: (peer: RawPeer) => unknown): void
  /** A client, and an upstream that answers every request with `answer` and keeps it in `seen`. */
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
      // The gateway has then noticed that its idle connections are gone.
      await sleep(10)
      const client = await rawClient(Number(new URL(url).port))
      t.teardown(() => client.socket.destroy())
      return client
    },
  }
}
