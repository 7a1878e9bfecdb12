/** The interoperability test of gRPC for Go: its client and its server, directly and through the gateway. */
import { freePort } from '../../test/helpers/child-server.js'
import { finish, launch } from '../../test/helpers/launch.js'
import { grpcInterop } from './install.js'
import { type Judge, startGateway } from './judge.js'

/** Those that need no credentials of a cloud. */
const CASES = [
  ...['empty_unary', 'large_unary', 'client_streaming', 'server_streaming', 'ping_pong', 'empty_stream'],
  ...['timeout_on_sleeping_server', 'cancel_after_begin', 'cancel_after_first_response', 'custom_metadata'],
  ...['status_code_and_message', 'special_status_message', 'unimplemented_method', 'unimplemented_service'],
]
const CASE_S = 30
const ROUNDS = 5

export const judgeGrpc: Judge = async (t, place) => {
  const { client, server } = await grpcInterop()
  const port = await freePort()
  const started = await launch(server, ['-port', String(port)], { ready: port })
  t.teardown(() => started.stop())
  const gateway = await startGateway(t, place, port, { tls: true, protocol: 'h2c' })
  // Go takes this file for the authorities that it trusts.
  const env = { ...process.env, SSL_CERT_FILE: place.certFile }
  const play = async (to: number, secure: boolean) => {
    const failed = []
    for (const name of Array(ROUNDS).fill(CASES).flat()) {
      const at = ['-server_host', 'localhost', '-server_port', String(to), `-use_tls=${secure}`]
      const { code, stderr } = await finish(client, [...at, '-test_case', name], { seconds: CASE_S, env })
      if (code !== 0) failed.push(`${name}: ${stderr.trim().split('\n').at(-1)}`)
    }
    return failed
  }
  const direct = await play(port, false)
  const clear = await startGateway(t, place, port, { protocol: 'h2c' })
  const through = [...(await play(gateway.port, true)), ...(await play(clear.port, false))]
  const faults = through.map(text => `gRPC interoperability: ${text}`)
  if (!gateway.isRunning() || !clear.isRunning()) faults.push('the gateway ended')
  const verdict = through.length <= direct.length ? 'none more' : 'some more'
  return {
    rows: [
      [
        'gRPC interoperability, Go',
        `${ROUNDS * CASES.length} cases, TLS and in the clear`,
        `${direct.length} failed`,
        `${through.length} failed`,
        verdict,
      ],
    ],
    faults,
  }
}
