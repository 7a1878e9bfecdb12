/** Reports addresses of `notify` that a gateway does not call unless the environment allows it. */
import type { Path } from '../../config/problem.js'
import type { Notify } from '../../config/words/notify.js'
import { UNLIMITED } from '../../config/words/words.js'
import { refusedTarget } from '../../webhooks/target.js'
import type { Remark, Subject } from './lint.js'

interface WrittenNotify {
  readonly notify: Notify | undefined
  readonly file: string
  /** Of the quota. */
  readonly path: Path
}

export function checkNotify(subject: Subject): Remark[] {
  return [...ofRows(subject), ...ofOverrides(subject), ...ofRules(subject)].flatMap(remarksOn)
}

function remarksOn({ notify, file, path }: WrittenNotify): Remark[] {
  const refused =
    notify && refusedTarget(new URL(notify.url.reveal()), { allowPrivate: false, allowHttp: false })
  if (refused === undefined) return []
  const message = `The gateway does not call this address: ${refused}.`
  return [{ severity: 'warning', file, path: [...path, 'notify', 'url'], message }]
}

function ofRows({ limits }: Subject): WrittenNotify[] {
  return limits.flatMap(({ file, document }) =>
    document.limits.flatMap(({ quotas }, i) =>
      Object.entries(quotas).map(([bucket, quota]) => ({
        notify: quota === UNLIMITED ? undefined : quota.notify,
        file,
        path: ['limits', i, 'quotas', bucket],
      })),
    ),
  )
}

function ofOverrides({ loaded: { config } }: Subject): WrittenNotify[] {
  return config.projects.flatMap(({ overrides }, i) =>
    Object.entries(overrides).map(([bucket, quota]) => ({
      notify: quota === UNLIMITED ? undefined : quota.notify,
      file: config.projectsFile,
      path: ['projects', i, 'overrides', bucket],
    })),
  )
}

function ofRules({ rules }: Subject): WrittenNotify[] {
  return rules
    .filter(({ kind }) => kind === 'volumetric')
    .flatMap(({ file, document }) =>
      document.rules.map(({ quota }, i) => ({
        notify: (quota as { readonly notify?: Notify }).notify,
        file,
        path: ['rules', i, 'quota'],
      })),
    )
}
