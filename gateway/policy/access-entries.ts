/** Compiles access entries for look-up, and reports faults in their networks. Pure. */

import { masked, networkText, parseNetwork } from '../../config/words/address.js'
import { compiledRule } from '../compiled-rule.js'
import type { AccessAction, Mode, Source } from '../types.js'
import { type AccessEntry, AccessTable } from './access.js'
import type { Fault } from './fault.js'

/** One entry as written; `until` is when it expires, in milliseconds since the epoch. */
export interface WrittenAccess {
  readonly id: string
  readonly networks?: readonly string[] | undefined
  readonly projects?: readonly string[] | undefined
  readonly action: AccessAction
  readonly mode: Mode
  readonly until?: number | undefined
}

/** A policy file of kind access. */
export interface AccessFile {
  readonly file: string
  readonly rules: readonly WrittenAccess[]
}

/** Compiles the files; when there are faults the table must not be used. */
export function compileAccess(
  files: readonly AccessFile[],
  sourceOf: (file: string, path: Fault['path']) => Source,
): { table: AccessTable; faults: Fault[] } {
  const entries: AccessEntry[] = []
  const faults: Fault[] = []
  const owners = new Map<string, Pick<Fault, 'file' | 'path'>>()
  for (const { file, rules } of files) {
    for (const [i, written] of rules.entries()) {
      const entry = accessEntry(written, sourceOf(file, ['rules', i]))
      entries.push(entry)
      for (const { name, path, wrong } of placesOf(written, entry)) {
        const at = ['rules', i, ...path]
        const place = `${written.mode} ${written.action} ${name}`
        const owner = owners.get(place)
        owners.set(place, owner ?? { file, path: at })
        const message = wrong ?? (owner && twice(name, written.action, sourceOf(owner.file, owner.path)))
        if (message !== undefined) faults.push({ file, path: at, message })
      }
    }
  }
  return { table: new AccessTable(entries), faults }
}

function twice(name: string, action: AccessAction, { file, line }: Source): string {
  return `"${name}" is already listed under "${action}" at ${file}:${line}. Remove one of the two.`
}

/** The networks and projects that an entry names, in canonical spelling, with their places in the file. */
function placesOf({ networks = [], projects = [] }: WrittenAccess, entry: AccessEntry) {
  return [
    ...networks.map((text, i) => {
      const network = entry.networks[i]
      return { name: network ? networkText(network) : text, path: ['networks', i], wrong: networkFault(text) }
    }),
    ...projects.map((name, i) => ({ name, path: ['projects', i], wrong: undefined })),
  ]
}

/** Why an address or CIDR is probably a mistake; undefined if it is fine. */
export function networkFault(text: string): string | undefined {
  const written = parseNetwork(text)
  if (written === undefined) return `"${text}" is not an address or network.`
  const network = masked(written)
  if (network.words.every((word, i) => word === written.words[i])) return undefined
  const address = networkText({ ...written, bits: written.words.length * 32 })
  return `"${text}" is an address within a network. Write "${networkText(network)}" for the network, or "${address}" for the address.`
}

/**
 * Compiles one entry for look-up.
 *
 * @param series its name in metrics, if its id is not in the files
 */
export function accessEntry(written: WrittenAccess, source: Source, series?: string): AccessEntry {
  const { id, mode, action, networks = [], projects = [], until } = written
  const key = networks.length > 0 ? (['client-ip'] as const) : (['project'] as const)
  const common = { kind: 'access', missing: 'skip', onStoreError: 'open', config: undefined } as const
  return {
    rule: compiledRule({ ...common, id, mode, key, source, series }),
    action,
    networks: networks.flatMap(text => parseNetwork(text) ?? []),
    projects,
    until,
  }
}
