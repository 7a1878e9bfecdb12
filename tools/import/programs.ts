/** Recognises whose configuration a file is, so that one of another program is refused by its right name. */

export type Members = Readonly<Record<string, unknown>>

/** The members of an object; nothing for other values. */
export const membersOf = (value: unknown): Members =>
  typeof value === 'object' && value !== null ? (value as Members) : {}

/** How to recognise a file, what it is, and what to do with it. */
interface Sign {
  readonly name: string
  /** The format of `sluice import` that reads it. */
  readonly format?: string
  readonly advice?: string
  /** Expressions of which each matches the text. */
  readonly text?: readonly RegExp[]
  data?(data: Members): boolean
}

const NO_IMPORT = 'There is no import of it. Begin with sluice init'
const AS_TRAEFIK_FILE =
  'Write their routers, middlewares and services as a dynamic configuration file of Traefik, and use sluice import traefik'
const KUBERNETES = /^apiVersion:/m

const SIGNS: readonly Sign[] = [
  {
    name: 'Kubernetes resources of Traefik',
    advice: `Custom resources are not read. ${AS_TRAEFIK_FILE}`,
    text: [KUBERNETES, /^ {0,8}(?:apiVersion|"apiVersion"): *"?traefik\./m],
  },
  {
    name: 'a Kubernetes Ingress or another Kubernetes resource',
    advice:
      'Ingresses and their annotations are not read. Of ingress-nginx, save what "nginx -T" prints in its pod, and use sluice import nginx',
    text: [KUBERNETES, /^kind:/m],
  },
  {
    name: 'Kong’s declarative configuration',
    format: 'kong',
    data: ({ services, consumers, ...rest }) =>
      '_format_version' in rest ||
      Array.isArray(consumers) ||
      (Array.isArray(services) && services.some(one => 'routes' in mapOf(one))),
  },
  {
    name: 'Envoy’s own configuration',
    advice:
      'Filters such as local_ratelimit are not read. Descriptors of its rate limit service are: use sluice import ratelimit',
    data: data => 'static_resources' in data || 'dynamic_resources' in data,
  },
  {
    name: 'a Compose file',
    advice: `Labels of containers are not read. ${AS_TRAEFIK_FILE}`,
    data: ({ services }) =>
      Object.values(mapOf(services)).some(one => 'image' in mapOf(one) || 'build' in mapOf(one)),
  },
  {
    name: 'a Traefik configuration in TOML',
    advice: 'Only YAML is read. Write the same settings as YAML, and use sluice import traefik',
    text: [
      /^[ \t]{0,20}\[{1,2}(?:http|tcp|udp|tls|entryPoints|providers|certificatesResolvers|api|log)(?:\.[^\]\n]{0,200})?\]{1,2}[ \t]*$/m,
    ],
  },
  {
    name: 'a Traefik dynamic configuration',
    format: 'traefik',
    data: ({ http }) => ['routers', 'services', 'middlewares'].some(key => key in mapOf(http)),
  },
  {
    name: 'a Traefik static configuration',
    format: 'traefik',
    data: data => 'entryPoints' in data || ('providers' in data && 'api' in data),
  },
  {
    name: 'a file of envoyproxy/ratelimit',
    format: 'ratelimit',
    data: data => 'domain' in data && 'descriptors' in data,
  },
  { name: 'an OpenAPI document', format: 'openapi', data: data => 'openapi' in data || 'swagger' in data },
  {
    name: 'a configuration of Sluice',
    advice: 'It can be used as it is: sluice check --config FOLDER',
    data: ({ version, ...rest }) =>
      version === 1 && ['upstreams', 'projects', 'kind'].some(key => key in rest),
  },
  {
    name: 'a configuration of HAProxy',
    advice: NO_IMPORT,
    text: [
      /^(?:frontend|backend|defaults|listen|global)(?:[ \t]+[\w.-]{1,100})?[ \t]*$/m,
      /^[ \t]+(?:bind|mode|server|timeout|acl|default_backend)[ \t]/m,
    ],
  },
  {
    name: 'a configuration of Apache httpd',
    advice: NO_IMPORT,
    text: [/^[ \t]{0,20}<(?:VirtualHost|Location|Directory|IfModule)\b/m],
  },
  {
    name: 'nginx configuration',
    format: 'nginx',
    text: [
      /^[ \t]{0,40}(?:http|events|server|upstream [\w.-]{1,100}|location [^{;\n]{1,200})[ \t]{0,20}\{/m,
      /;[ \t]*(?:#.*|\})?$/m,
    ],
  },
  {
    name: 'a Caddyfile',
    advice: NO_IMPORT,
    text: [
      /^[ \t]{0,20}(?:reverse_proxy|file_server|rate_limit|encode|handle_path|handle|basic_auth|basicauth)\b/m,
      /\{[ \t]*$/m,
    ],
  },
]

/**
 * Why a file is not one of `format`, whose own name is `wanted`; undefined when it is, or when nothing is known of it.
 *
 * @param data what the file holds, if it is YAML or JSON
 */
export function foreignFile(format: string, wanted: string, text: string, data: unknown): string | undefined {
  const found = SIGNS.find(sign => sign.text?.every(one => one.test(text)) ?? sign.data?.(mapOf(data)))
  if (found === undefined || found.format === format) return undefined
  return `This is ${found.name}, not ${wanted}. ${found.advice ?? `Use sluice import ${found.format}`}.`
}

const mapOf = (value: unknown): Members => (Array.isArray(value) ? {} : membersOf(value))

/** What to say about programs that are no format of `sluice import`. */
export const OTHER_PROGRAMS: Readonly<Record<string, string>> = {
  envoy:
    'Envoy’s own file is not read. "sluice import ratelimit" reads the descriptors of its rate limit service (envoyproxy/ratelimit).',
  caddy: 'There is no import of Caddy. Begin with "sluice init".',
  haproxy: 'There is no import of HAProxy. Begin with "sluice init".',
  apache: 'There is no import of Apache httpd. Begin with "sluice init".',
  ingress:
    'Kubernetes Ingresses are not read. Of ingress-nginx, save what "nginx -T" prints in its pod, and use "sluice import nginx".',
}
