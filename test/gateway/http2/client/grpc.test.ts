/** gRPC through a gateway, with a client and a server that are not ours. */
import { once } from 'node:events'
import { type ServiceError, status } from '@grpc/grpc-js'
import t from 'tap'
import { canMakeCertificates } from '../../../helpers/certificates.js'
import { waitUntil } from '../../../helpers/wait.js'
import { ECHO, grpcScene, MEGABYTE, same, unary } from './grpc-scene.js'

if (canMakeCertificates(t)) {
  t.test('a unary call, with its trailers', async t => {
    const { client } = await grpcScene(t)
    const { answer, trailers } = await unary(client, Buffer.from('hello'))
    t.equal(answer.toString(), 'hello')
    t.same(trailers.get('x-sum'), ['5'])
    t.equal((await unary(client, MEGABYTE)).answer.length, MEGABYTE.length)
  })

  t.test('a failed call has the status, the message and the trailers of its server', async t => {
    const { client } = await grpcScene(t)
    const error = (await unary(client, Buffer.from('fail')).catch(error => error)) as ServiceError
    t.equal(error.code, status.FAILED_PRECONDITION)
    t.equal(error.details, 'not today')
    t.same(error.metadata.get('x-sum'), ['4'])
  })

  t.test('the messages of a client', async t => {
    const { client } = await grpcScene(t)
    const answer = await new Promise<Buffer>((resolve, reject) => {
      const call = client.makeClientStreamRequest(ECHO.collect.path, same, same, (error, value) =>
        error === null ? resolve(value as Buffer) : reject(error),
      )
      for (let i = 0; i < 50; i++) call.write(Buffer.from(`${i},`))
      call.end()
    })
    t.equal(answer.toString(), Array.from({ length: 50 }, (_, i) => `${i},`).join(''))
  })

  t.test('the messages of a server', async t => {
    const { client } = await grpcScene(t)
    const call = client.makeServerStreamRequest(ECHO.count.path, same, same, Buffer.alloc(0))
    const seen: string[] = []
    for await (const message of call) seen.push(String(message))
    t.same(
      seen,
      Array.from({ length: 100 }, (_, i) => String(i)),
    )
  })

  t.test('messages both ways, each as soon as it is sent', async t => {
    const { client } = await grpcScene(t)
    const call = client.makeBidiStreamRequest(ECHO.talk.path, same, same)
    for (const text of ['a', 'b', 'c']) {
      const echo = once(call, 'data')
      call.write(Buffer.from(text))
      t.equal(String((await echo)[0]), text)
    }
    const ended = once(call, 'status')
    call.end()
    call.resume()
    t.equal((await ended)[0].code, status.OK)
  })

  t.test('a call that its client cancels is cancelled at the server', async t => {
    const { client, cancelled } = await grpcScene(t)
    const call = client.makeServerStreamRequest(ECHO.count.path, same, same, Buffer.from('endless'))
    call.on('error', () => {})
    await once(call, 'data')
    call.cancel()
    await waitUntil('the cancellation', () => cancelled.includes('count'))
    const other = client.makeUnaryRequest(ECHO.unary.path, same, same, Buffer.from('wait'), () => {})
    setTimeout(() => other.cancel(), 100)
    await waitUntil('the cancellation', () => cancelled.includes('unary'))
    t.equal((await unary(client, Buffer.from('after'))).answer.toString(), 'after')
  })
}
