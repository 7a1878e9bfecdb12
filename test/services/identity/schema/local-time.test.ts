/** Times that people enter, in the time zone that the schema names. */
import t from 'tap'
import { compileSchema } from '../../../../services/identity/index.js'
import { sentEntries, sentTraits } from '../../../../services/identity/render/sent.js'
import { tag } from '../decode/form-data.js'
import { rendered } from '../render/rendered.js'
import { submitEntries, submitJson, traitsSchema } from '../submit.js'

const moment = (zone: string) => ({ type: 'string', format: 'date-time', 'x-timezone': zone })
const clock = (zone: string) => ({ type: 'string', format: 'time', 'x-timezone': zone })

const schema = traitsSchema({
  berlin: moment('Europe/Berlin'),
  utc: { ...moment('UTC'), type: ['string', 'null'] },
  delhi: moment('+05:30'),
  opens: { ...clock('-03:00'), description: 'When the door opens.' },
  plain: { type: 'string', format: 'time' },
})

t.test('a time without a zone is read in the zone that the schema names', async t => {
  for (const [name, typed, kept] of [
    ['berlin', '2026-07-01T14:30', '2026-07-01T14:30:00+02:00'],
    ['berlin', '2026-01-01 14:30:15.250', '2026-01-01T14:30:15.250+01:00'],
    ['berlin', '2026-01-01T14:30:00Z', '2026-01-01T14:30:00Z'],
    ['berlin', '2026-10-25T02:30', '2026-10-25T02:30:00+02:00'],
    ['berlin', '2026-03-29T02:30', '2026-03-29T02:30:00+01:00'],
    ['berlin', '1890-01-01T00:00', '1889-12-31T23:06:32.000Z'],
    ['utc', '2026-01-01T14:30', '2026-01-01T14:30:00Z'],
    ['delhi', '2026-01-01T14:30', '2026-01-01T14:30:00+05:30'],
    ['opens', '08:00', '08:00:00-03:00'],
    ['opens', '08:00:30', '08:00:30-03:00'],
    ['opens', '08:00:00Z', '08:00:00Z'],
  ] as const) {
    t.same(await submitEntries(schema, [[`traits.${name}`, typed]]), { [name]: kept }, `${name} ${typed}`)
  }
  t.same(
    await submitJson(schema, { 'traits.opens': '08:00' }),
    { opens: '08:00:00-03:00' },
    'a flat JSON name is converted too',
  )
  t.same(await submitEntries(schema, [['traits.utc', '']]), { utc: null }, 'a blank gives null')
  for (const [name, typed] of [
    ['berlin', '2026-02-30T14:30'],
    ['berlin', 'tomorrow'],
    ['opens', '25:00'],
    ['plain', '08:00'],
  ] as const) {
    t.same(await submitEntries(schema, [[`traits.${name}`, typed]]), [`traits.${name} format`], typed)
  }
  t.same(
    await submitJson(schema, { traits: { opens: '08:00' } }),
    ['traits.opens format'],
    'nested JSON is not converted',
  )
})

t.test('the form shows stored times in native inputs in the zone of the schema', t => {
  const page = rendered(
    schema,
    sentTraits(schema.root, {
      berlin: '2026-07-01T12:30:00Z',
      utc: '2026-01-01T15:30:15+01:00',
      delhi: '2026-01-01T00:00:00.5Z',
      opens: '01:00:00+02:00',
      plain: '08:00:00Z',
    }),
  )
  for (const [name, expected] of [
    ['berlin', { type: 'datetime-local', value: '2026-07-01T14:30', step: undefined }],
    ['utc', { type: 'datetime-local', value: '2026-01-01T14:30:15', step: '1' }],
    ['delhi', { type: 'datetime-local', value: '2026-01-01T05:30:00.500', step: 'any' }],
    ['opens', { type: 'time', value: '20:00' }],
    ['plain', { type: 'text', value: '08:00:00Z' }],
  ] as const) {
    t.match(tag(page, `traits.${name}`), expected, name)
  }
  t.match(page, />Time zone: Europe\/Berlin\.</)
  t.match(page, />When the door opens\. Time zone: -03:00\.</)
  t.match(tag(rendered(schema), 'traits.berlin'), { type: 'datetime-local', value: '' })
  t.end()
})

t.test('a time that a native input would change is shown as text', async t => {
  for (const kept of ['2026-10-25T01:30:00Z', '2026-01-01T14:30:00.1234567Z']) {
    const page = rendered(schema, sentTraits(schema.root, { berlin: kept }))
    t.match(tag(page, 'traits.berlin'), { type: 'text', value: kept })
  }
  const wrong = [{ name: 'traits.berlin', text: 'tomorrow' }]
  t.match(tag(rendered(schema, sentEntries(schema.root, wrong)), 'traits.berlin'), {
    type: 'text',
    value: 'tomorrow',
  })
  const local = [{ name: 'traits.berlin', text: '2026-07-01T14:30' }]
  t.match(tag(rendered(schema, sentEntries(schema.root, local)), 'traits.berlin'), {
    type: 'datetime-local',
    value: '2026-07-01T14:30',
  })
})

t.test('an invalid time zone is refused when the schema loads', t => {
  for (const [property, message] of [
    [moment('Europe/Atlantis'), /^traits\.at: x-timezone has to be UTC, an offset such as \+01:00 or a zone/],
    [{ ...moment('UTC'), 'x-timezone': 1 }, /^traits\.at: x-timezone has to be UTC/],
    [{ type: 'string', 'x-timezone': 'UTC' }, /^traits\.at: x-timezone needs the format/],
    [clock('Europe/Berlin'), /^traits\.at: a time without a date needs UTC or an offset/],
  ] as const) {
    const traits = { type: 'object', properties: { at: property } }
    t.throws(() => compileSchema({ type: 'object', properties: { traits } }), { message })
  }
  t.end()
})
