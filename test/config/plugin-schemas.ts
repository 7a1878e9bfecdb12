/** Schemas as the built-in plugins hand them in, so that these tests need no gateway. */
import { Type } from 'typebox'
import { Duration } from '../../config/duration.js'
import type { PluginSchemas } from '../../config/schema.js'

export const plugins: PluginSchemas = {
  identify: {
    host: Type.Object({}),
    header: Type.Object({
      header: Type.String({ default: 'x-project-id', description: 'Header that names the project.' }),
    }),
  },
  limit: {
    'in-flight': Type.Object({
      max: Type.Integer({ minimum: 1, default: 1, description: 'Requests at the same time.' }),
      slotTtl: Duration({ default: '15s', description: 'Life of a slot that is not renewed.' }),
      count: Type.Unsafe<'handshake' | 'lifetime'>({
        type: 'string',
        enum: ['handshake', 'lifetime'],
        default: 'handshake',
        description: 'How long an upgraded connection counts.',
      }),
    }),
  },
}
