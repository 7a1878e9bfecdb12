/** `health` of an upstream in gateway.yaml. */
import { Type } from 'typebox'
import { Duration } from './duration.js'
import { Strict } from './fields.js'

const inARow = (count: number, description: string) =>
  Type.Integer({ default: count, minimum: 1, maximum: 100, description })

export const Health = Strict(
  {
    path: Type.String({
      // No fragment, and nothing that would end the request line.
      pattern: '^/[!"$-~]*$',
      maxLength: 1024,
      expected: 'a path such as /healthz, with a query if it needs one',
      description: 'What is asked by GET of each address. Any 2xx says that it is well.',
    }),
    every: Duration({
      default: '5s',
      minimum: '1s',
      maximum: '1h',
      description: 'From one check of an address to the next, more or less a tenth; from each worker.',
    }),
    timeout: Duration({
      default: '2s',
      minimum: '10ms',
      maximum: '1m',
      description: 'Longest wait for the answer to a check, connection included.',
    }),
    healthy: inARow(2, 'Checks in a row that must pass before an address gets requests again.'),
    unhealthy: inARow(3, 'Checks in a row that must fail before an address gets no more requests.'),
  },
  {
    description:
      'Checks of each address, besides what requests show. One that fails them is left out while another is well.',
  },
)
