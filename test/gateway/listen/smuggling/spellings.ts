/**
 * Spellings that servers have parsed differently (classes as in the trophies of the HTTP Garden,
 * `narfindustries/http-garden`). All text is latin1: one character is one byte.
 */

const MORE_THAN_64_BITS = 2n ** 64n

/** A length of `bytes`, as some parsers would accept it. */
export function lengthSpellings(bytes: number): string[] {
  const hex = bytes.toString(16)
  return [
    ...[
      `${bytes}`,
      `0${bytes}`,
      `+${bytes}`,
      `-${bytes}`,
      `0x${hex}`,
      `${bytes}.0`,
      `${bytes}e0`,
      `"${bytes}"`,
    ],
    ...[
      `${bytes}, ${bytes}`,
      `${bytes},`,
      `,${bytes}`,
      `${bytes};`,
      `${bytes} 0`,
      `${bytes}\t`,
      `\t${bytes}`,
    ],
    ...[
      `\x0b${bytes}`,
      `${bytes}\x0c`,
      `${bytes}\0`,
      `\xa0${bytes}`,
      `${bytes}_0`,
      `${bytes}\r`,
      `${bytes}\n 0`,
    ],
    ...[String(MORE_THAN_64_BITS + BigInt(bytes)), String(2 ** 32 + bytes), '', ' ', 'chunked', '0', '\xb2'],
    ...[`0\r\n ${bytes}`, `${bytes}\r\n\t`, `0, ${bytes}`, `${bytes}, 0`, `${'0'.repeat(40)}${bytes}`],
  ]
}

export const CODINGS = [
  ...[
    'chunked',
    'Chunked',
    'CHUNKED',
    'xchunked',
    'chunkedx',
    'chunked;q=1',
    'chunked;',
    '"chunked"',
    'chunked#',
  ],
  ...[
    'chunked, identity',
    'identity, chunked',
    'chunked, chunked',
    'gzip, chunked',
    'chunked, gzip',
    'identity',
  ],
  ...['chunked,', ',chunked', ', chunked', 'chunked ,', ' chunked', '\tchunked', 'chunked\t', '\x0bchunked'],
  ...['chunked\x0b', 'chunked\0', '\0chunked', 'chunked\xa0', '\xefchunked', '\r\n chunked', 'chun\r\n ked'],
  ...['chunked\r\n ', 'chunked\r', 'chunked\n', 'chunked\r\r', 'c\xc5\xbfhunked', '', 'cow', '0', 'compress'],
]

/** A field's name in disguise; the text may bring a line of its own before it. */
export function nameSpellings(name: string): string[] {
  return [
    ...[name, name.toLowerCase(), name.toUpperCase(), `${name} `, `${name}\t`, ` ${name}`, `\t${name}`],
    ...[name.replace('-', '_'), name.replace('-', ' '), name.replace('-', ''), `"${name}"`, `${name}\0`],
    ...[`\0${name}`, `${name}\x0b`, `\x0b${name}`, `${name}\r`, `\r${name}`, `\n${name}`, `${name}\xa0`],
    ...[
      `X: y\r${name}`,
      `X: y\n${name}`,
      `X: y\r\n ${name}`,
      `X: y\0\r\n${name}`,
      `X\r\n${name}`,
      `:${name}`,
    ],
    ...[`X: y\r\r\n${name}`, `X:\n\r\n${name}`, `${name}:`, `Connection: ${name}\r\n${name}`, `(${name})`],
  ]
}

/** Chunk-size lines, without their end, for `bytes` of data. */
export function sizeSpellings(bytes: number): string[] {
  const hex = bytes.toString(16)
  return [
    ...[
      hex,
      hex.toUpperCase(),
      `0${hex}`,
      `0x${hex}`,
      `+${hex}`,
      `-${hex}`,
      ` ${hex}`,
      `${hex} `,
      `${hex}\t`,
    ],
    ...[`${hex};a`, `${hex};a=b`, `${hex};a="\r\n"`, `${hex};\n`, `${hex} ;a`, `${hex};a=\xff`, `${hex};\0`],
    ...[`${hex};${'e'.repeat(300)}`, `${hex}\r`, `${hex}\n`, `${hex}\0`, `${hex},`, `${hex}_`, `${hex}g`, ''],
    ...[
      `10000000000000000${hex}`,
      `ffffffffffffffff${hex}`,
      `${'0'.repeat(30)}${hex}`,
      `${hex}\r\r`,
      `${hex};\r`,
    ],
    ...[`${hex};a\r\n0`, `${hex}#`, `${hex}\x0b`, `"${hex}"`, `\n${hex}`, `\r\n${hex}`, `${bytes}`],
  ]
}

export const LAST_SIZES = [
  '0',
  '00',
  '000000000',
  '-0',
  '+0',
  '0x0',
  '0 ',
  ' 0',
  '0;a',
  '0;a="',
  '0\t',
  '0\r',
  '',
]

export const LINE_ENDS = ['\r\n', '\n', '\r', '\r\r\n', '\n\r', '\r \n', '\r\n\n', '\0\r\n', '\x0b\r\n', '']

export const HEAD_ENDS = [
  ...['\r\n\r\n', '\n\n', '\r\n\n', '\n\r\n', '\r\r\n\r\n', '\r\n\r\r\n', '\r\n \r\n', '\r\n\t\r\n\r\n'],
  ...['\r\r', '\r\n\0\r\n', '\r\n\x0b\r\n\r\n', '\n\r\n\r', '\r\n\r'],
]

export const DATA_ENDS = ['\r\n', '\n', '\r', '', 'XX', '\r\nX', ' \r\n', '\r\r\n', '\n\n', '\r\n\r\n']

export const TRAILERS = [
  ...[
    '',
    'X-T: y\r\n',
    'Content-Length: 10\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Host: evil\r\n',
    ' fold\r\n',
  ],
  ...[
    'no colon\r\n',
    'X : y\r\n',
    'X: y\n',
    'X: a\rb\r\n',
    'X: \0\r\n',
    '\r',
    'X-Sluice-Request-Id: forged\r\n',
  ],
]

export const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD']

/** Request lines for `target`; the first is the plain one. */
export function requestLines(method: string, target: string): string[] {
  const plain = `${method} ${target} HTTP/1.1`
  const path = target.replace(/\?.*/, '')
  const query = target.slice(path.length)
  return [
    ...[
      plain,
      `\r\n${plain}`,
      `\n${plain}`,
      `\r\n\r\n${plain}`,
      ` ${plain}`,
      `\t${plain}`,
      `${plain} `,
      `\0${plain}`,
    ],
    ...[`${method}  ${target} HTTP/1.1`, `${method}\t${target}\tHTTP/1.1`, `${method} ${target}  HTTP/1.1`],
    ...[`${method} ${target}`, `${method} ${target} HTTP/0.9`, `${method} ${target} HTTP/1.0`],
    ...[`${method} ${target} HTTP/1.10`, `${method} ${target} HTTP/1.2`, `${method} ${target} HTTP/2.0`],
    ...[
      `${method} ${target} http/1.1`,
      `${method} ${target} HTTP/01.1`,
      `${method} ${target} HTTP/1.1\rX: y`,
    ],
    ...[
      `${method.toLowerCase()} ${target} HTTP/1.1`,
      `${method}\0 ${target} HTTP/1.1`,
      `${method}_X ${target} HTTP/1.1`,
    ],
    ...[
      `TRACE ${target} HTTP/1.1`,
      `CONNECT a:80 HTTP/1.1`,
      `OPTIONS * HTTP/1.1`,
      `PRI * HTTP/2.0`,
      `${method} * HTTP/1.1`,
    ],
    ...[`${method} http://a${target} HTTP/1.1`, `${method} http://evil${target} HTTP/1.1`],
    ...[`${method} http://a@evil${target} HTTP/1.1`, `${method} HTTP://a:80${target} HTTP/1.1`],
    ...[
      `${method} http:/${target} HTTP/1.1`,
      `${method} ftp://a${target} HTTP/1.1`,
      `${method} a:80 HTTP/1.1`,
    ],
    ...[`${method} //evil${target} HTTP/1.1`, `${method} ${path} HTTP/1.1${query} HTTP/1.1`],
    ...[`${method} ${path}%0d%0aX: y${query} HTTP/1.1`, `${method} ${path}\\..${query} HTTP/1.1`],
    ...[
      `${method} ${path}#${query} HTTP/1.1`,
      `${method} ${target}\r HTTP/1.1`,
      `${method} ${target}\x7f HTTP/1.1`,
    ],
    ...[`${method} ${path}/%2e%2e/b${query} HTTP/1.1`, `${method} ${path}%2f..${query} HTTP/1.1`],
    ...[`${method} ${path}${'/a'.repeat(9000)}${query} HTTP/1.1`, `${method} ${path}\xe9${query} HTTP/1.1`],
    ...[
      `${method} ${target}&b=a b HTTP/1.1`,
      `${method} ${target}&b=\xe9 HTTP/1.1`,
      `${method} ${target}%00 HTTP/1.1`,
    ],
  ]
}

/** What may stand in place of `Host: a`. */
export const HOSTS = [
  ...[
    'Host: a',
    '',
    'Host: a\r\nHost: a',
    'Host: a\r\nHost: evil',
    'Host: a\r\nhost: b',
    'Host: a, b',
    'Host:',
  ],
  ...[
    'Host : a',
    ' Host: a',
    'Host: a/b',
    'Host: u@a',
    'Host: a:b',
    'Host: a:99999',
    'Host: a:1:2',
    'Host: a\0',
  ],
  ...[
    'Host: a\rb',
    'Host: a#b',
    'Host: a?b',
    'Host: [::1',
    'Host: \xe9',
    'Host\0: a',
    'Host: a b',
    'X: y\nHost: a',
  ],
  ...[
    'Host: a\r\n\tb',
    'Host: a\r\nHost_: b',
    'Host: a\r\nX-Forwarded-Host: evil',
    `Host: ${'a'.repeat(17_000)}`,
  ],
]

/** Lines that have made one of two servers lose track of the requests. */
export const ODD_LINES = [
  ...[
    'no colon',
    ': no name',
    'X: a\0b',
    'X: a\rb',
    'X: a\nb',
    'X: a\r\n b',
    'X: a\r\n\tb',
    'X y: z',
    'X\0: y',
  ],
  ...[
    'X: \x01',
    'X: \x7f',
    'X: \xff\xfe',
    '\xe9: y',
    'X(): y',
    'X: y\r',
    '\r',
    ' ',
    '\t',
    'X:',
    'X :',
    '"X": y',
  ],
  ...[
    'Connection: Host',
    'Connection: Content-Length',
    'Connection: Transfer-Encoding',
    'Connection: close, x',
  ],
  ...[
    'Connection: x-sluice-request-id',
    'Connection: Via',
    'Proxy-Connection: keep-alive',
    'Keep-Alive: 300',
  ],
  ...['X-Sluice-Request-Id: forged', 'X_Sluice_Request_Id: forged', 'x-sluice-project: evil', 'TE: trailers'],
  ...[
    'TE: chunked',
    'Trailer: Content-Length',
    'Expect: 100-continue',
    'Expect: 100-continue, x',
    'Expect: x',
  ],
  ...[
    'Expect:',
    'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nConnection: Upgrade, HTTP2-Settings',
    'Upgrade: h2c',
  ],
  ...[
    'Connection: Upgrade\r\nUpgrade: websocket',
    'Connection: Upgrade\r\nUpgrade: websocket, h2c',
    'Range: bytes=0-',
  ],
  ...['Content-Encoding: chunked', 'X-HTTP-Method-Override: TRACE', 'HTTP/1.1 200 OK', 'GET /x HTTP/1.1'],
  ...[`X: ${'y'.repeat(17_000)}`, `${'x'.repeat(17_000)}: y`, 'X: y\r\n'.repeat(60).trimEnd()],
]
