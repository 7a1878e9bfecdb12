/** Generators of text. All of it is Latin-1: one character is one byte. */
import fc, { type Arbitrary } from 'fast-check'

export type Text = Arbitrary<string>

export const always = (text: string): Text => fc.constant(text)
export const oneOf = (...texts: string[]): Text => fc.constantFrom(...texts)

/** Mostly `plain`, sometimes one of `odd`. */
export const mostly = (plain: Text, odd: readonly string[], weight = 12): Text =>
  fc.oneof({ weight, arbitrary: plain }, { weight: 1, arbitrary: fc.constantFrom(...odd) })

/** One of the texts, with a probability according to its weight. */
export const weighed = (...choices: (readonly [weight: number, text: Text])[]): Text =>
  fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })))

export const joined = (...parts: Text[]): Text => fc.tuple(...parts).map(texts => texts.join(''))

export const repeated = (item: Text, maxLength: number): Text =>
  fc.array(item, { maxLength }).map(texts => texts.join(''))

export const madeOf = (characters: string, minLength: number, maxLength: number): Text =>
  fc.string({ unit: fc.constantFrom(...characters), minLength, maxLength })

/** Arbitrary bytes. */
export const bytes = (minLength: number, maxLength: number): Text =>
  fc.string({
    unit: fc.integer({ min: 0, max: 255 }).map(code => String.fromCharCode(code)),
    minLength,
    maxLength,
  })
