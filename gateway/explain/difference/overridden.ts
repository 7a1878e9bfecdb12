/** What operators have changed at run time, compared with what the files say. */
import { quotaWords } from '../../../config/negotiated-limit.js'
import { ACCESS } from '../../../config/schema/access.js'
import type { AccessPolicy } from '../../../config/types.js'
import type { Configuration } from '../../configured/load.js'
import { reportModes } from '../../overrides/mode.js'
import { quotaForNow } from '../../overrides/quota.js'
import type { Contents } from '../../overrides/store.js'
import { isPast } from '../../overrides/until.js'
import { compare } from './compare.js'
import { type ChangeSentence, sentencesOf } from './sentences.js'

/** In the words of `sluice diff`. What has expired is left out. */
export function overriddenBy(files: Configuration, contents: Contents): ChangeSentence[] {
  const { config, compiled } = files
  const now = Date.now()
  const quotas = [...contents.quotas.values()].filter(one => !isPast(one, now)).map(quotaForNow)
  const current = {
    ...files,
    compiled: quotas.length > 0 ? compiled.withOverrides({ quotas }) : compiled,
    config: { ...config, access: [...config.access, entriesOf(contents)] },
  }
  return [...modes(files, contents), ...sentencesOf(compare(files, current)), ...unlisted(files, contents)]
}

/** Once for each rule: a bucket's mode holds for all plans and projects. */
function modes(files: Configuration, contents: Contents): ChangeSentence[] {
  return reportModes(contents, files)
    .filter(one => one.in_force && one.mode !== one.declared_mode)
    .map(({ rule, mode, declared_mode }) => ({
      heading: 'Modes',
      change: 'changed',
      sentence: `${rule}: mode ${declared_mode} → ${mode}. It has other counters meanwhile`,
    }))
}

/** The access entries of the admin port, in the form of a file. */
function entriesOf(contents: Contents): AccessPolicy {
  const now = Date.now()
  const rules = [...contents.access.values()]
    .filter(entry => !isPast(entry, now))
    .map(({ id, networks, projects, action, mode, until }) => ({
      ...{ id, action, mode },
      ...(networks && { networks: [...networks] }),
      ...(projects && { projects: [...projects] }),
      ...(until !== undefined && { until }),
    }))
  return { file: '/access', kind: ACCESS, document: { version: 1, kind: ACCESS, rules } }
}

/** Limits of projects of which the files know nothing. */
function unlisted({ config }: Configuration, contents: Contents): ChangeSentence[] {
  const now = Date.now()
  const listed = new Set(config.projects.map(({ id }) => id))
  return [...contents.quotas.values()]
    .filter(one => !listed.has(one.project) && !isPast(one, now))
    .map(({ project, bucket, quota }) => ({
      heading: 'Projects that projects.yaml does not list',
      change: 'added',
      sentence: `${project}: ${bucket} with ${quotaWords(quota)}`,
    }))
}
