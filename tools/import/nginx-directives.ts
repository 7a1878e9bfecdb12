/** Directives of nginx: which are imported, and which have no effect here or are to be written elsewhere. */
import type { Findings } from './findings.js'
import { changeIn, isAsHere } from './nginx-fields.js'
import type { Directive } from './nginx-text.js'
import { words } from './yaml.js'

/** What has no counterpart because it concerns how nginx works, not what it lets through or forwards. */
const NOT_NEEDED =
  /^(worker_|sendfile|tcp_|gzip|pid$|user$|daemon$|error_log$|access_log$|log_|log_format$|keepalive|types|default_type$|mime|events$|multi_accept$|use$|server_tokens$|proxy_buffer|proxy_busy|proxy_http_version$|proxy_max_temp|proxy_temp|proxy_request_buffering$|charset|resolver|open_file_cache|output_buffers$|postpone_output$|reset_timedout|send_timeout$|server_names_hash|variables_hash|map_hash|client_(body|header)_(buffer|temp|in)|large_client|lingering|limit_(req|conn)_log_level$|load_module$|aio|directio|etag$|http2|accept_mutex|thread_pool|env$|master_process$|pcre_jit$|include$|recursive_error|merge_slashes$|absolute_redirect$|port_in_redirect$|server_name_in_redirect$|underscores_in|ignore_invalid|zone$|least_conn$|ip_hash$|random$|hash$|status_zone$|msie|connection_pool|request_pool|if_modified|max_ranges|chunked|proxy_socket|subrequest|geoip|geoip2|real_ip_recursive$)/

const TLS = 'TLS is listen.tls in gateway.yaml: cert and key'
const ELSEWHERE: Readonly<Record<string, string>> = {
  ssl_certificate: TLS,
  ssl_certificate_key: TLS,
  ssl_protocols: 'It is listen.tls.minVersion in gateway.yaml',
  ssl_ciphers: 'It is listen.tls.ciphers in gateway.yaml',
  client_header_timeout: 'It is listen.headTimeout in gateway.yaml',
  client_body_timeout: 'It is timeouts.idle of the upstream',
  proxy_send_timeout: 'It is timeouts.idle of the upstream',
  proxy_ssl_trusted_certificate: 'It is "ca" of the upstream',
}

const AS_SENT = 'Responses are passed on as the upstream sends them'
const MISSING: Readonly<Record<string, string>> = {
  rewrite: 'The upstream gets the path that the client sent',
  proxy_set_header: 'The upstream gets the client’s fields, its Host, and X-Forwarded-For, -Proto and -Host',
  proxy_hide_header: AS_SENT,
  add_header: 'Routes add fields to every response ("always"), with a value that they know',
  error_page: 'Refusals have one shape',
  proxy_redirect: AS_SENT,
  proxy_pass_header: AS_SENT,
  proxy_ignore_headers: AS_SENT,
  proxy_pass_request_headers: 'Requests are passed on with their fields',
  proxy_pass_request_body: 'Requests are passed on with their bodies',
  proxy_ssl_verify: 'Certificates of https upstreams are always verified',
  proxy_ssl_certificate: 'No certificate is shown to upstreams',
  proxy_ssl_certificate_key: 'No certificate is shown to upstreams',
  proxy_ssl_name: 'The certificate of an https upstream is for the host in its address',
  proxy_ssl_server_name: 'The name told to an https upstream is the host in its address',
  http3: 'HTTP/3 is not served',
  limit_rate: 'Only requests are limited, not bytes',
  limit_rate_after: 'Only requests are limited, not bytes',
  proxy_next_upstream: 'An address that does not answer is left out for a while',
}
/** What changes answers, copies requests or writes about them, of nginx itself and of common modules; it refuses none. */
const ASIDE =
  /^(add_(trailer|before_body|after_body)|addition_types|api$|autoindex|break|body_filter_by_|brotli|content_by_|create_full_put_path|dav_|disable_symlinks|echo|empty_gif|expires|f4f|fancyindex|flv|header_filter_by_|health_check|hls|image_filter|init_(worker_)?by_|js_(content|import|include|path|set|var|preload|shared|fetch|header_filter|body_filter|engine)|keyval|log_by_|lua_|match$|min_delete_depth|mirror|modsecurity_|more_(set|clear)_headers$|mp4|open_log_file|opentelemetry|opentracing|otel_|override_charset|pagespeed|perl$|perl_(modules|require|set)|proxy_(bind|cookie|force_ranges|headers_hash|ignore_client|intercept_errors|limit_rate|method|next_upstream|no_cache|set_body|send_lowat|store)|quic|random_index|read_ahead|rewrite_log|satisfy|sent_http|session_log|set_|slice|split_clients|ssi|status$|stub_status|sub_filter|subs_filter|types_|uninitialized|upload_progress|userid|vhost_traffic|xml_entities|xslt|zstd)/
const CONTENT = /^(root|alias|index|try_files|fastcgi_|uwsgi_|scgi_|grpc_|memcached_)/
/** Blocks, guards and limits, which other files of this import read. */
const STRUCTURE =
  /^(http|server|location|if|upstream|stream|mail|listen|return|allow|deny|internal|http[23].*|proxy_cache.*|limit_(req|conn|rate|except).*|(auth|ssl|proxy_ssl|secure_link)_.*|valid_referers|(access|(server_)?rewrite)_by_.*)$/
/** What becomes part of the files. */
const READ = new Set([
  ...words('proxy_pass limit_req limit_conn limit_req_zone limit_conn_zone upstream geo map set events http'),
  ...words(
    'limit_req_dry_run limit_conn_dry_run server_name set_real_ip_from real_ip_header real_ip_recursive',
  ),
  ...words('client_max_body_size proxy_connect_timeout proxy_read_timeout'),
])

/** False for directives of modules that nobody here knows: they may refuse requests. */
export const isKnown = (name: string): boolean =>
  [ASIDE, STRUCTURE, CONTENT, NOT_NEEDED].some(one => one.test(name)) ||
  READ.has(name) ||
  Object.hasOwn(ELSEWHERE, name) ||
  Object.hasOwn(MISSING, name)

export function reportDirective(one: Directive, into: Findings): void {
  const { name } = one
  if (READ.has(name) || changeIn(one) !== undefined) return
  if (Object.hasOwn(ELSEWHERE, name)) into.elsewhere(one, `"${name}". ${ELSEWHERE[name]}.`)
  else if (NOT_NEEDED.test(name) || isAsHere(one)) into.notNeeded(name)
  else {
    const why = missing(name)
    if (why === undefined) into.notNeeded(name)
    else into.leftOut(one, `"${name}". ${why}.`, `${name} ${one.words[0]}`)
  }
}

/** What the files lack without a directive; undefined when nothing. */
function missing(name: string): string | undefined {
  if (CONTENT.test(name)) return 'Requests are forwarded over HTTP, nothing else is served'
  if (Object.hasOwn(MISSING, name)) return MISSING[name]
  if (/^(ssl_|proxy_ssl_)/.test(name)) return undefined
  return name.startsWith('proxy_cache')
    ? 'Nothing is cached'
    : 'Requests and answers are passed on without it'
}
