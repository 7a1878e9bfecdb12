import { firstWebhook } from '../events/queue.js'
import { viewWebhook } from '../events/webhook.js'
import { openTokens } from '../external/connection.js'
import type { Directory } from '../model.js'
import type { DirectoryView, PullView } from '../schemas/directory.js'
import type { SecretBox } from '../secrets.js'
import { overlapOf } from '../secrets.js'
import type { PullState, Store } from '../store/contract.js'

export interface ViewParts {
  readonly store: Store
  readonly box: SecretBox
  /** The service's own address, without a trailing slash. */
  readonly baseUrl: string
}

/** Directories as the API shows them, in the given order. */
export async function viewDirectories(
  { store, box, baseUrl }: ViewParts,
  directories: readonly Directory[],
): Promise<DirectoryView[]> {
  const pulled = directories.filter(directory => directory.external).map(directory => directory.id)
  const states = pulled.length > 0 ? await store.pullStates(pulled) : new Map<string, never>()
  return directories.map(directory => {
    const view = viewPlain(directory, box, baseUrl)
    if (!directory.external) return view
    const { access, refresh } = openTokens(box, directory.id, directory.external)
    const last = states.get(directory.id)
    return {
      ...view,
      external_domain: directory.external.domain,
      external_access_token: access,
      external_refresh_token: refresh,
      external_sync: last ? viewPull(last.state, last.until) : null,
    }
  })
}

export async function viewDirectory(parts: ViewParts, directory: Directory): Promise<DirectoryView> {
  const [view] = await viewDirectories(parts, [directory])
  return view as DirectoryView
}

/** A pull as the API shows it; `until` is the end of its lease (epoch ms). */
export function viewPull(
  { outcome, started, finished, problem, counts }: PullState,
  until: number,
): PullView {
  const isDead = outcome === 'running' && until < Date.now()
  return {
    status: isDead ? 'interrupted' : outcome,
    started_at: started,
    finished_at: finished,
    error: problem,
    ...counts,
  }
}

function viewPlain(directory: Directory, box: SecretBox, baseUrl: string): DirectoryView {
  const { id, name, tenant, product, type, deactivated, webhook, oldScimSecrets } = directory
  const path = `/api/scim/v2.0/${id}`
  return {
    id,
    name,
    tenant,
    product,
    type,
    log_webhook_events: directory.logWebhookEvents,
    deactivated,
    scim: {
      path,
      secret: box.open(directory.scimSecret, id, 'scim'),
      endpoint: `${baseUrl}${path}`,
      ...overlapOf(oldScimSecrets),
    },
    webhook: webhook ? viewWebhook(box, id, firstWebhook, webhook) : { endpoint: '', secret: '' },
  }
}
