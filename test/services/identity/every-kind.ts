import type { Test } from 'tap'
import { submitEntries, traitsSchema } from './submit.js'

export const text = { type: 'string' }

/** A schema with every kind of field. */
export const everyKind = traitsSchema({
  text,
  count: { type: 'integer' },
  size: { type: 'number' },
  flag: { type: 'boolean' },
  maybe: { type: ['integer', 'null'] },
  union: { type: ['string', 'number', 'boolean'] },
  level: { enum: [1, 'two', true, null] },
  terms: { const: true },
  note: { type: 'string', enum: ['', 'x'] },
  tags: { type: 'array', items: text },
  counts: { type: 'array', items: { type: 'integer' } },
  pair: { type: 'array', items: [{ type: 'integer' }, { type: 'boolean' }], additionalItems: false },
  people: {
    type: 'array',
    items: { type: 'object', required: ['name'], properties: { name: text, adult: { type: 'boolean' } } },
  },
  address: {
    type: 'object',
    required: ['city'],
    properties: { city: text, zip: text, main: { type: 'boolean' } },
  },
  extra: { type: 'object' },
  constructor: text,
})

/** The texts of one field, and the expected result. */
export type Case = readonly [name: string, texts: readonly string[], expected: unknown]

/** Submits each case's texts under its name. */
export async function table(t: Test, cases: readonly Case[]): Promise<void> {
  for (const [name, texts, expected] of cases) {
    const got = await submitEntries(
      everyKind,
      texts.map(value => [`traits.${name}`, value]),
    )
    t.same(got, expected, `${name} <- ${JSON.stringify(texts).slice(0, 60)}`)
  }
}
/** The only error of a field. */
export const wrong = (name: string, code = 'type') => [`traits.${name} ${code}`]
