import type { FieldError } from '../../../../services/identity/decode/messages.js'
import type { CompiledSchema } from '../../../../services/identity/index.js'
import { buildNodes } from '../../../../services/identity/render/nodes.js'
import { renderForm } from '../../../../services/identity/render/render.js'
import { type Sent, sentDefaults } from '../../../../services/identity/render/sent.js'

/** The form of a schema as HTML; without `sent`, as shown for the first time. */
export function rendered(
  schema: CompiledSchema,
  sent: Sent = sentDefaults(schema.root),
  errors: readonly FieldError[] = [],
) {
  return renderForm(
    { action: '/here', submit: 'Send', hidden: {}, say: text => text },
    buildNodes(schema, sent, errors),
    errors,
  ).text
}
