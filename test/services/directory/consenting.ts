/** The consent of a provider's admin, as a browser goes through it. */
import type { Answer, Service } from './harness.js'

/** A new one-time link to the directory's consent. */
export async function linkTo(service: Service, directoryId: string, body?: object): Promise<URL> {
  const { body: answer } = await service.manage('POST', `/${directoryId}/consent-link`, body)
  return new URL(answer.data.url)
}

export interface Begun {
  readonly answer: Response
  /** At the provider. */
  readonly location: URL
  readonly state: string
  readonly setCookie: string
  /** What the browser sends with the callback. */
  readonly cookie: string
}

/** Opens a link, at whatever process of the service and without the path in front of it. */
export async function openLink(service: Service, { search }: URL): Promise<Begun> {
  const address = new URL(`/api/scim/oauth/authorize${search}`, service.url)
  const answer = await fetch(address, { redirect: 'manual' })
  const location = new URL(answer.headers.get('location') ?? 'about:blank')
  const setCookie = answer.headers.get('set-cookie') ?? ''
  const state = location.searchParams.get('state') ?? ''
  return { answer, location, state, setCookie, cookie: setCookie.split(';')[0] ?? '' }
}

/** The provider sends the browser back. */
export const comeBack = (
  service: Service,
  { state }: Pick<Begun, 'state'>,
  headers: Record<string, string>,
  code = 'good-code',
): Promise<Answer> =>
  service.call('GET', `/api/scim/oauth/callback?state=${state}&code=${code}`, undefined, headers)

/** The admin's browser with a new link: to the provider and back, which gives `code`. */
export async function consent(service: Service, directoryId: string, code = 'good-code') {
  const begun = await openLink(service, await linkTo(service, directoryId))
  const ended = await comeBack(service, begun, { cookie: begun.cookie }, code)
  return { ...begun, begun: begun.answer, ended }
}
