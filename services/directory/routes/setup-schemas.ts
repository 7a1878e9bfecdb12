/** What the API document says of set-up links. */
const text = { type: 'string' }
const moment = { type: 'string', format: 'date-time' }

const link = {
  id: text,
  created_at: moment,
  expires_at: moment,
  token_shown_at: {
    type: ['string', 'null'],
    format: 'date-time',
    description: 'When it showed the SCIM secret',
  },
}

export const setupSchemas = [
  { $id: 'SetupLink', type: 'object', properties: link, required: Object.keys(link) },
  {
    $id: 'NewSetupLink',
    type: 'object',
    properties: { ...link, url: { ...text, description: 'Shown once' } },
    required: [...Object.keys(link), 'url'],
  },
]
