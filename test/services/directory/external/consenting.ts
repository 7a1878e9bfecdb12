/** The consent of a provider's administrator, as a browser goes through it. */
import type { Answer, Service } from '../harness.js'

/** A new one-time link for the directory's consent. */
export async function linkTo(service: Service, directoryId: string, body?: object): Promise<URL> {
  const { body: answer } = await service.manage('POST', `/${directoryId}/consent-link`, body)
  return new URL(answer.data.url)
}

export interface Begun {
  readonly answer: Response
  /** The provider's address to which the browser is redirected. */
  readonly location: URL
  readonly state: string
  readonly setCookie: string
  /** What the browser sends with the callback. */
  readonly cookie: string
}

/** Opens a link on the given process of the service, without the link's path prefix. */
export async function openLink(service: Service, { search }: URL): Promise<Begun> {
  const address = new URL(`/api/scim/oauth/authorize${search}`, service.url)
  const answer = await fetch(address, { redirect: 'manual' })
  const location = new URL(answer.headers.get('location') ?? 'about:blank')
  const setCookie = answer.headers.get('set-cookie') ?? ''
  const state = location.searchParams.get('state') ?? ''
  return { answer, location, state, setCookie, cookie: setCookie.split(';')[0] ?? '' }
}

/** The callback, to which the provider redirects the browser. */
export const comeBack = (
  service: Service,
  { state }: Pick<Begun, 'state'>,
  headers: Record<string, string>,
  code = 'good-code',
): Promise<Answer> =>
  service.call('GET', `/api/scim/oauth/callback?state=${state}&code=${code}`, undefined, headers)

/** Opens a new link in the administrator's browser, goes to the provider and returns with `code`. */
export async function consent(service: Service, directoryId: string, code = 'good-code') {
  const begun = await openLink(service, await linkTo(service, directoryId))
  const ended = await comeBack(service, begun, { cookie: begun.cookie }, code)
  return { ...begun, begun: begun.answer, ended }
}
