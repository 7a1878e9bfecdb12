/** Real servers that give an application the fields of a request as variables: `php -S`, and lighttpd with mod_cgi. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { findCommand, type ServerKind, startServer } from './child-server.js'
import { send } from './http.js'
import { reportMissing } from './missing.js'

/** Prints HTTP_NAME=value for each field of the request, as its application finds them. */
const SHELL = '#!/bin/sh\nprintf "Content-Type: text/plain\\r\\n\\r\\n"\nenv | grep ^HTTP_\n'
const PHP = `<?php
header('Content-Type: text/plain');
foreach ($_SERVER as $name => $value) if (str_starts_with($name, 'HTTP_')) echo "$name=$value\\n";
`

const answers = async (port: number) => (await send(`http://127.0.0.1:${port}/env.cgi`)).status === 200

const KINDS: Readonly<Record<'php' | 'lighttpd', Omit<ServerKind, 'command'>>> = {
  php: {
    args(port, folder) {
      writeFileSync(join(folder, 'env.php'), PHP)
      return ['-S', `127.0.0.1:${port}`, join(folder, 'env.php')]
    },
    answers,
  },
  lighttpd: {
    args(port, folder) {
      const served = join(folder, 'served')
      mkdirSync(served, { recursive: true })
      writeFileSync(join(served, 'env.cgi'), SHELL)
      const config = join(folder, 'lighttpd.conf')
      writeFileSync(
        config,
        `server.modules = ("mod_cgi")
server.bind = "127.0.0.1"
server.port = ${port}
server.document-root = "${served}"
server.upload-dirs = ("${folder}")
cgi.assign = (".cgi" => "/bin/sh")
`,
      )
      return ['-D', '-f', config]
    },
    answers,
  },
}

/** Starts the server; returns its URL, or undefined after reporting the test as skipped (a failure in CI). */
export async function cgiServer(t: Test, name: keyof typeof KINDS): Promise<string | undefined> {
  const command = findCommand([name], ['/usr/sbin'])
  if (command === undefined) {
    reportMissing(t, name, 'install it with `npm run services` or your package manager')
    return undefined
  }
  const server = await startServer({ command, ...KINDS[name] })
  t.teardown(() => server.stop())
  return `http://127.0.0.1:${server.port}`
}
