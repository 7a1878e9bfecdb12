/** Recognises whose configuration a file is, so that one of another program is refused by its right name. */

/** What a file is, and what to do with it. */
interface Recognised {
  readonly name: string
  /** The format of `sluice import` that reads it. */
  readonly format?: string
  readonly advice?: string
}

type Data = Readonly<Record<string, unknown>>

interface Sign extends Recognised {
  isIt(text: string, data: Data): boolean
}

const KUBERNETES = /^apiVersion:/m
const SIGNS: readonly Sign[] = [
  {
    name: 'Kubernetes resources of Traefik',
    advice:
      'Custom resources are not read. Write their routers, middlewares and services as a dynamic configuration file of Traefik, and use sluice import traefik',
    isIt: text => KUBERNETES.test(text) && /^ {0,8}(?:apiVersion|"apiVersion"): *"?traefik\./m.test(text),
  },
  {
    name: 'a Kubernetes Ingress or another Kubernetes resource',
    advice:
      'Ingresses and their annotations are not read. Of ingress-nginx, save what "nginx -T" prints in its pod, and use sluice import nginx',
    isIt: text => KUBERNETES.test(text) && /^kind:/m.test(text),
  },
  {
    name: 'Kong’s declarative configuration',
    format: 'kong',
    isIt: (_text, data) =>
      '_format_version' in data || Array.isArray(data.consumers) || hasListOfMaps(data.services, 'routes'),
  },
  {
    name: 'Envoy’s own configuration',
    advice:
      'Filters such as local_ratelimit are not read. Descriptors of its rate limit service are: use sluice import ratelimit',
    isIt: (_text, data) => 'static_resources' in data || 'dynamic_resources' in data,
  },
  {
    name: 'a Compose file',
    advice:
      'Labels of containers are not read. Write their routers, middlewares and services as a dynamic configuration file of Traefik, and use sluice import traefik',
    isIt: (_text, { services }) =>
      isMap(services) &&
      Object.values(services).some(one => isMap(one) && ('image' in one || 'build' in one)),
  },
  {
    name: 'a Traefik configuration in TOML',
    advice: 'Only YAML is read. Write the same settings as YAML, and use sluice import traefik',
    isIt: text =>
      /^[ \t]{0,20}\[{1,2}(?:http|tcp|udp|tls|entryPoints|providers|certificatesResolvers|api|log)(?:\.[^\]\n]{0,200})?\]{1,2}[ \t]*$/m.test(
        text,
      ),
  },
  {
    name: 'a Traefik dynamic configuration',
    format: 'traefik',
    isIt: (_text, { http }) => isMap(http) && ['routers', 'services', 'middlewares'].some(key => key in http),
  },
  {
    name: 'a Traefik static configuration',
    format: 'traefik',
    isIt: (_text, data) => 'entryPoints' in data || ('providers' in data && 'api' in data),
  },
  {
    name: 'a file of envoyproxy/ratelimit',
    format: 'ratelimit',
    isIt: (_text, data) => 'domain' in data && 'descriptors' in data,
  },
  {
    name: 'an OpenAPI document',
    format: 'openapi',
    isIt: (_text, data) => 'openapi' in data || 'swagger' in data,
  },
  {
    name: 'a configuration of Sluice',
    advice: 'It can be used as it is: sluice check --config FOLDER',
    isIt: (_text, { version, ...rest }) =>
      version === 1 && ['upstreams', 'projects', 'kind'].some(key => key in rest),
  },
  {
    name: 'a configuration of HAProxy',
    advice: 'There is no import of it. Begin with sluice init',
    isIt: text =>
      /^(?:frontend|backend|defaults|listen|global)(?:[ \t]+[\w.-]{1,100})?[ \t]*$/m.test(text) &&
      /^[ \t]+(?:bind|mode|server|timeout|acl|default_backend)[ \t]/m.test(text),
  },
  {
    name: 'a configuration of Apache httpd',
    advice: 'There is no import of it. Begin with sluice init',
    isIt: text => /^[ \t]{0,20}<(?:VirtualHost|Location|Directory|IfModule)\b/m.test(text),
  },
  {
    name: 'nginx configuration',
    format: 'nginx',
    isIt: text =>
      /^[ \t]{0,40}(?:http|events|server|upstream [\w.-]{1,100}|location [^{;\n]{1,200})[ \t]{0,20}\{/m.test(
        text,
      ) && /;[ \t]*(?:#.*|\})?$/m.test(text),
  },
  {
    name: 'a Caddyfile',
    advice: 'There is no import of it. Begin with sluice init',
    isIt: text =>
      /^[ \t]{0,20}(?:reverse_proxy|file_server|rate_limit|encode|handle_path|handle|basic_auth|basicauth)\b/m.test(
        text,
      ) && /\{[ \t]*$/m.test(text),
  },
]

/**
 * Why a file is not one of `format`, whose own name is `wanted`; undefined when it is, or when nothing is known of it.
 *
 * @param data what the file holds, if it is YAML or JSON
 */
export function foreignFile(format: string, wanted: string, text: string, data: unknown): string | undefined {
  const found = SIGNS.find(sign => sign.isIt(text, isMap(data) ? data : {}))
  if (found === undefined || found.format === format) return undefined
  const advice = found.advice ?? `Use sluice import ${found.format}`
  return `This is ${found.name}, not ${wanted}. ${advice}.`
}

const isMap = (value: unknown): value is Data =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const hasListOfMaps = (value: unknown, key: string): boolean =>
  Array.isArray(value) && value.some(one => isMap(one) && key in one)

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
