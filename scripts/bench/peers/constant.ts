/** A refusal sized like Sluice's. */
export const CONSTANT_BODY = JSON.stringify({ pad: 'x'.repeat(250) })

export const CONSTANT_FIELDS = [
  'Content-Type',
  'application/problem+json',
  'RateLimit-Policy',
  `"${'x'.repeat(100)}"`,
  'Content-Length',
  String(CONSTANT_BODY.length),
]
