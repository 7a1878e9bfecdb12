import type { DirectoryCore } from '../core.js'
import type { EventCallback } from '../events/event.js'
import { ConnectionFlowError } from '../external/error.js'
import type { TokenSet } from '../external/oauth.js'
import { viewDirectory, viewPull } from '../routes/directory-view.js'
import { HttpError } from '../routes/http.js'
import type { DirectoryView, PullView } from '../schemas/directory.js'
import { DirectoryStoreUnavailable } from '../store/contract.js'
import { createCalls, type LibraryAnswer } from './calls.js'
import { createHandler, type DirectoryRequest, type DirectoryResponse } from './handler.js'
import { type Management, managementOf } from './management.js'

export interface SyncResult extends PullView {
  readonly directory_id: string
}

/**
 * The directory service for the process that embeds it: the management API, SCIM, and the calls that take a callback.
 */
export interface EmbeddedDirectory extends Management {
  /**
   * Handles one SCIM request, as the HTTP intake does. Once the change is stored, the callback gets its events one
   * after the other and is awaited; if it throws, so does `handle`, though the change stays.
   */
  handle(request: DirectoryRequest, callback?: EventCallback): Promise<DirectoryResponse>
  /**
   * Pulls all connected directories of the external provider. Returns those that were pulled; the callback gets their
   * events.
   */
  sync(callback?: EventCallback): Promise<LibraryAnswer<SyncResult[]>>
  /** The three steps that connect a directory to the external provider. */
  readonly external: {
    /**
     * `redirectUrl` is required when neither EXTERNAL_REDIRECT_URL nor BASE_URL is set; the exchange needs the same
     * one.
     */
    generateAuthorizationUrl(of: {
      directoryId: string
      redirectUrl?: string
    }): Promise<LibraryAnswer<{ authorizationUrl: string }>>
    getAccessToken(of: {
      directoryId: string
      code: string
      redirectUrl?: string
    }): Promise<LibraryAnswer<TokenSet>>
    /**
     * `expiryDate` (epoch ms) comes from the token set; without it the access token is used until the provider refuses
     * it.
     */
    setToken(of: {
      directoryId: string
      accessToken: string
      refreshToken: string
      expiryDate?: number
    }): Promise<LibraryAnswer<DirectoryView>>
  }
  close(): Promise<void>
}

export function embed(core: DirectoryCore): EmbeddedDirectory {
  const { store, box, external, settings } = core
  const { connection, puller } = external
  const baseUrl = settings.baseUrl ?? ''
  const view = (directory: Parameters<typeof viewDirectory>[1]) =>
    viewDirectory({ store, box, baseUrl }, directory)

  function redirectUrl(given: string | undefined): string {
    const url = given ?? external.redirectUrl(settings.baseUrl)
    if (url !== undefined && URL.canParse(url)) return url
    throw new ConnectionFlowError(
      400,
      'redirectUrl is required when neither EXTERNAL_REDIRECT_URL nor BASE_URL is set.',
    )
  }

  return {
    ...managementOf(createCalls(core)),
    handle: createHandler(core),
    sync: callback =>
      answer(async () =>
        (await puller.pullAll(callback)).map(({ directoryId, ...state }) => ({
          directory_id: directoryId,
          ...viewPull(state, 0),
        })),
      ),
    external: {
      generateAuthorizationUrl: of =>
        answer(async () => {
          const id = text(of.directoryId, 'directoryId')
          return { authorizationUrl: await connection.authorizationUrl(id, redirectUrl(of.redirectUrl)) }
        }),
      getAccessToken: of =>
        answer(() =>
          connection.exchange(
            text(of.directoryId, 'directoryId'),
            text(of.code, 'code'),
            redirectUrl(of.redirectUrl),
          ),
        ),
      setToken: of =>
        answer(async () => {
          const { accessToken: access, refreshToken: refresh, expiryDate } = of
          const expires = expiryDate === undefined ? {} : { expires: time(expiryDate) }
          const id = text(of.directoryId, 'directoryId')
          return view(await connection.store(id, { access, refresh, ...expires }))
        }),
    },
    close: core.close,
  }
}

/** Returns refusals as answers; any other error is thrown. */
async function answer<Data>(work: () => Promise<Data>): Promise<LibraryAnswer<Data>> {
  try {
    return { data: await work(), error: null }
  } catch (error) {
    const code = codeOf(error)
    if (code === undefined) throw error
    return { data: null, error: { message: (error as Error).message, code } }
  }
}

function codeOf(error: unknown): number | undefined {
  if (error instanceof DirectoryStoreUnavailable) return 503
  return error instanceof HttpError ? error.status : undefined
}

function text(value: unknown, name: string): string {
  if (typeof value === 'string' && value !== '') return value
  throw new ConnectionFlowError(400, `${name} is required, as a string.`)
}

function time(value: unknown): number {
  if (Number.isSafeInteger(value)) return value as number
  throw new ConnectionFlowError(400, 'expiryDate must be a time in milliseconds since 1970.')
}
