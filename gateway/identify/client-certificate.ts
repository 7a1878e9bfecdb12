/** Plugin: the project that a client's certificate names, where `listen.tls.clientCa` has issued it. */
import { Type } from 'typebox'
import { Word } from '../../config/schema/fields.js'
import { definePlugin, type Project, type WrongCredential } from '../plugin.js'
import type { ClientCertificate } from '../types.js'
import { namedProjects, namesListedOnly } from './named-project.js'

const FIELDS = ['san-dns', 'san-uri', 'subject-cn'] as const

export const clientCertificate = definePlugin({
  name: 'client-certificate',
  kind: 'identify',
  verifies: true,
  listedOnly: namesListedOnly,
  challenge: () => 'Client-Certificate',
  schema: Type.Object({
    project: Word(FIELDS, {
      default: 'san-dns',
      description:
        'Where the id of the project is: in a DNS name or a URI of the subject alternative names, or in the common name. Of a URI other than urn:… it is the segments of the path, joined by ":".',
    }),
    projects: Word(['any', 'known'], {
      default: 'any',
      description: 'Which projects certificates may name: any, or those that projects.yaml lists.',
    }),
  }),
  create(config, tools) {
    const named = namedProjects(config.projects, tools)
    const listed = new Set(tools.projects.map(({ id }) => id))
    // DNS names have no case, and ids do.
    const byLowerCase = new Map(tools.projects.map(({ id }) => [id.toLowerCase(), id]))
    const meant = (name: string) => (listed.has(name) ? name : (byLowerCase.get(name) ?? name))
    /** By certificate: a connection brings the same one with each request. */
    const known = new WeakMap<ClientCertificate, Project | WrongCredential>()
    const read = (certificate: ClientCertificate): Project | WrongCredential => {
      const wrong = (reason: string) => ({ wrongCredential: certificate.fingerprint, reason })
      if (!certificate.trusted) return wrong('not trusted')
      const names = idsIn(certificate, config.project)
      const ids = config.project === 'san-dns' ? names.map(meant) : names
      // Of several names, one that is listed is meant.
      const found = [...ids]
        .sort((a, b) => Number(listed.has(b)) - Number(listed.has(a)))
        .map(id => named(id))
      const project = found.find(one => typeof one !== 'string')
      return project ?? wrong((found[0] as string | undefined) ?? 'no project')
    }
    return {
      identify({ certificate }) {
        if (certificate === undefined) return undefined
        if (certificate.trusted && !(Date.now() < certificate.validUntil)) {
          return { wrongCredential: certificate.fingerprint, reason: 'expired' }
        }
        const said = known.get(certificate) ?? read(certificate)
        known.set(certificate, said)
        return said
      },
    }
  },
})

function idsIn({ dnsNames, uris, commonName }: ClientCertificate, field: (typeof FIELDS)[number]): string[] {
  if (field === 'san-dns') return [...dnsNames]
  if (field === 'subject-cn') return commonName === undefined ? [] : [commonName]
  return uris.map(uri => {
    if (/^urn:/i.test(uri) || !URL.canParse(uri)) return uri
    return new URL(uri).pathname.split('/').filter(Boolean).join(':')
  })
}
