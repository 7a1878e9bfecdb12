/** A file of another program is refused by its right name, with what to do instead. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sluice } from '../helpers/command.js'

interface Foreign {
  readonly text: string
  /** The format of `sluice import` that reads it. */
  readonly format?: string
  readonly says: RegExp
}

const FILES: Readonly<Record<string, Foreign>> = {
  Caddyfile: {
    text: 'example.com {\n\treverse_proxy localhost:3000\n}\n',
    says: /This is a Caddyfile, .*There is no import of it\. Begin with sluice init\./,
  },
  'ingress.yaml': {
    text: 'apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: shop\nspec:\n  rules: []\n',
    says: /This is a Kubernetes Ingress .*use sluice import nginx\./,
  },
  'httpd.conf': {
    text: '<VirtualHost *:80>\n  ServerName shop.example.com\n  ProxyPass / http://localhost:3000/\n</VirtualHost>\n',
    says: /This is a configuration of Apache httpd, .*Begin with sluice init\./,
  },
  'haproxy.cfg': {
    text: 'frontend web\n  bind :80\n  default_backend app\nbackend app\n  server a 127.0.0.1:3000\n',
    says: /This is a configuration of HAProxy, .*Begin with sluice init\./,
  },
  'compose.yaml': {
    text: 'services:\n  shop:\n    image: shop\n    labels:\n      - "traefik.http.routers.shop.rule=Host(`a`)"\n',
    says: /This is a Compose file, .*use sluice import traefik\./,
  },
  'envoy.yaml': {
    text: 'static_resources:\n  listeners: []\n',
    says: /This is Envoy’s own configuration, .*use sluice import ratelimit\./,
  },
  'kong.yaml': {
    text: '_format_version: "3.0"\nservices:\n  - name: shop\n    url: http://localhost:3000\n',
    format: 'kong',
    says: /This is Kong’s declarative configuration, .*Use sluice import kong\./,
  },
  'traefik.yaml': {
    text: 'http:\n  routers:\n    shop: { rule: "Host(`a.example.com`)", service: shop }\n',
    format: 'traefik',
    says: /This is a Traefik dynamic configuration, .*Use sluice import traefik\./,
  },
  'nginx.conf': {
    text: 'events {}\nhttp {\n  server {\n    location / { proxy_pass http://localhost:3000; }\n  }\n}\n',
    format: 'nginx',
    says: /This is nginx configuration, .*Use sluice import nginx\./,
  },
  'ratelimit.yaml': {
    text: 'domain: shop\ndescriptors:\n  - key: remote_address\n    rate_limit: { unit: minute, requests_per_unit: 5 }\n',
    format: 'ratelimit',
    says: /This is a file of envoyproxy\/ratelimit, .*Use sluice import ratelimit\./,
  },
}

for (const [name, { text, format, says }] of Object.entries(FILES)) {
  t.test(`${name} is refused by its right name, and nothing is written`, async t => {
    const file = join(t.testdir(), name)
    writeFileSync(file, text)
    for (const other of ['kong', 'nginx', 'traefik', 'ratelimit'].filter(one => one !== format)) {
      const { code, out, err } = await sluice(['import', other, file])
      t.same({ code, out }, { code: 2, out: '' }, other)
      t.match(err, says, other)
      t.ok(err.includes(`${file}:1:1`), `${other}: the sentence names the file`)
    }
  })
}
