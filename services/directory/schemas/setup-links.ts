import { type Static, Type } from 'typebox'
import { component, moment, orNull, text } from './parts.js'

const link = {
  id: text(),
  created_at: moment(),
  expires_at: moment(),
  token_shown_at: orNull(moment('When it showed the SCIM secret')),
}

export const setupLinkSchema = component('SetupLink', Type.Object(link))
/** A link to the page on which a customer's admin connects their provider. */
export type SetupLinkView = Static<typeof setupLinkSchema>

export const newSetupLinkSchema = component('NewSetupLink', Type.Object({ ...link, url: text('Shown once') }))
/** A new link with its URL, which is shown only this once. */
export type NewSetupLinkView = Static<typeof newSetupLinkSchema>
