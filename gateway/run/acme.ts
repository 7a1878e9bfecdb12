/** The keeper of the certificate that `listen.tls.acme` describes. */
import { ConfigFiles } from '../../config/files.js'
import { CertificateKeeper, type KeeperOptions } from '../acme/keeper.js'
import type { Configuration } from '../configured/load.js'

/** Undefined where no certificate is to be ordered. */
export function certificateKeeper(
  { config, contents }: Configuration,
  rest: Pick<KeeperOptions, 'install' | 'log'>,
): CertificateKeeper | undefined {
  const { tls, redirectHttp } = config.gateway.listen
  if (tls?.acme === undefined) return undefined
  const { domains, email, directory, folder, ca } = tls.acme
  const read = ca === undefined ? undefined : new ConfigFiles(contents).text(ca)
  const text = read && 'text' in read ? read.text : undefined
  return new CertificateKeeper({
    settings: { domains, email, directory, folder, ca: text },
    // HTTP-01 is asked for at port 80, so that it needs the port for redirects.
    kinds: redirectHttp === undefined ? ['tls-alpn-01'] : ['http-01', 'tls-alpn-01'],
    ...rest,
  })
}
