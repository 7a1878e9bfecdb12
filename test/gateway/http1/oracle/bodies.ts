/** Content and chunks: most well formed, some odd, some hostile. */
import { DATA_ENDS, LAST_SIZES, sizeSpellings, TRAILERS } from '../../listen/smuggling/spellings.js'
import { CRLF, token, value } from './heads.js'
import { always, bytes, joined, madeOf, mostly, oneOf, repeated, weighed } from './texts.js'

/** A request that no client sent: it stands where one of two parsers could see a body. */
export const POISON = 'GET /poison HTTP/1.1\r\nHost: evil\r\n\r\n'
export const content = mostly(bytes(0, 40), [POISON, '0\r\n\r\n', `0\r\n\r\n${POISON}`, ''], 6)

const extension = weighed(
  [12, always('')],
  [1, joined(always(';'), token, always('='), token)],
  [1, joined(always(';'), token, always('="'), madeOf('a ;\t\xe9', 0, 8), always('"'))],
  [1, joined(oneOf(';', ' ;', '; ', ';;', '=', ';='), madeOf('ab;=" \t\\', 0, 6))],
)

const chunk = bytes(1, 40).chain(data =>
  joined(
    mostly(always(data.length.toString(16)), sizeSpellings(data.length), 30),
    extension,
    CRLF,
    always(data),
    mostly(always('\r\n'), DATA_ENDS, 40),
  ),
)
const trailers = mostly(repeated(joined(token, always(': '), value, always('\r\n')), 2), TRAILERS, 4)

/** A complete chunked body. */
export const chunks = joined(
  repeated(chunk, 4),
  mostly(always('0'), LAST_SIZES, 20),
  extension,
  CRLF,
  trailers,
  CRLF,
)
