/** Pages and messages in the language that the client prefers. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { typeMessage, validationMessage } from '../../../services/identity/decode/messages.js'
import { Languages } from '../../../services/identity/languages.js'
import { inProject, projectFile } from '../../helpers/root.js'
import { tag } from './decode/form-data.js'
import { started } from './started.js'

const SHIPPED = inProject('config/languages')
const FORM = '/self-service/registration'

t.test('the most preferred available language is chosen, or else English', t => {
  const languages = new Languages([SHIPPED, t.testdir({ 'fr-CA.json': '{"Save": "Enregistrer"}' })])
  for (const [field, tag] of [
    [undefined, 'en'],
    ['*', 'en'],
    ['de', 'de'],
    ['DE-at', 'de'],
    ['ja, de;q=0.5, en;q=0.4', 'de'],
    ['en-GB, de', 'en'],
    ['de;q=0.2, en;q=0.9', 'en'],
    ['de;q=0, ja', 'en'],
    ['fr', 'en'],
    ['fr-ca', 'fr-CA'],
    ['de;q=much', 'en'],
    [`${'x,'.repeat(1000)}de`, 'en'],
  ] as const) {
    t.equal(languages.choose(field).tag, tag, String(field))
  }
  t.end()
})

t.test('placeholders keep their values, and sentences without a translation stay English', t => {
  const folder = t.testdir({
    'de.json': '{"First name": "Vorname", "This is required.": "Fehlt.", "{1} of {2}": "{2}: {1}"}',
  })
  const { say } = new Languages([SHIPPED, folder]).choose('de')
  t.equal(say('Use at most 20 characters.'), 'Verwenden Sie höchstens 20 Zeichen.')
  t.equal(say('This has to be a number or a whole number.'), 'Erwartet wird eine Zahl oder eine ganze Zahl.')
  t.equal(say('One or the other. Time zone: UTC.'), 'One or the other. Zeitzone: UTC.')
  t.equal(say('First name'), 'Vorname', 'a word of the schema is translated')
  t.equal(say('First name 2'), 'Vorname 2', 'a word followed by a number is translated')
  t.equal(say('This is required.'), 'Fehlt.', "the operator's translation takes precedence")
  t.equal(say('three of four'), 'four: three')
  t.equal(say('Last name'), 'Last name')
  t.equal(say('{1}'), '{1}')
  t.end()
})

t.test('an invalid language file stops the start with a message that says why', async t => {
  for (const [text, message] of [
    ['{', /de\.json is not valid JSON/],
    ['[]', /de\.json has to be an object/],
    ['{"a": 1}', /the text of "a" has to be a string/],
    [`{"a": "${'€'.repeat(400_000)}"}`, /de\.json is larger than 1 MiB/],
    ['{"a {1}": "b"}', /the text of "a \{1\}" has to be a string with the same placeholders/],
  ] as const) {
    const folder = t.testdir({ 'de.json': text })
    t.throws(() => new Languages([folder]), { message }, text.slice(0, 40))
  }
  await t.rejects(started(t, { IDENTITY_LANGUAGES: join(t.testdir(), 'none') }), {
    message: /IDENTITY_LANGUAGES/,
  })
})

t.test(
  'the shipped languages translate every validation message and have no sentence that the code does not use',
  t => {
    const { say } = new Languages([SHIPPED]).choose('de')
    const source = projectFile('services/identity/decode/messages.ts')
    const keywords = [...source.matchAll(/^ {2}(\w+): '|case '(\w+)'|'(false schema)'/gm)].flatMap(found =>
      found.slice(1),
    )
    t.ok(keywords.length > 20)
    for (const keyword of keywords.filter(Boolean)) {
      for (const params of [
        { limit: 1 },
        { limit: 7, multipleOf: 7, type: 'string', format: keyword, allowedValue: true },
      ]) {
        const sentence = validationMessage(keyword as string, params)
        t.not(say(sentence), sentence, sentence)
        const format = validationMessage('format', params)
        t.not(say(format), format, format)
      }
    }
    for (const type of ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']) {
      t.notMatch(say(typeMessage([type, 'string'])), /\b(?:a|an|or|text|list)\b/)
    }
    const all = [
      ...['app', 'http'],
      ...['messages', 'type', 'assemble', 'parse', 'validate'].map(name => `decode/${name}`),
      ...['inputs', 'nodes', 'render'].map(name => `render/${name}`),
      ...['admin', 'csrf', 'page', 'registration', 'settings', 'self-service'].map(name => `routes/${name}`),
    ]
      .map(name => `identity/${name}`)
      .concat(['http/server', 'http/wrong-keys', 'http/body'])
      .map(name => projectFile(`services/${name}.ts`))
      .join('\n')
    const table = JSON.parse(readFileSync(join(SHIPPED, 'de.json'), 'utf8')) as Record<string, string>
    for (const english of Object.keys(table)) {
      const [longest = ''] = english.split(/\{[1-9]\}/).sort((a, b) => b.length - a.length)
      const words = longest.replace(/^One answer needs your/, 'your').replace(/answers need your/, 'your')
      t.ok(all.includes(words.trim()), english)
    }
    t.end()
  },
)

t.test('forms, refusals and errors are in the requested language', async t => {
  const own = t.testdir({ 'de.json': '{"E-mail": "E-Mail-Adresse", "First": "Vorname"}' })
  const { call, form } = await started(t, { IDENTITY_LANGUAGES: own })
  const german = { 'accept-language': 'de-AT,de;q=0.9,en;q=0.5' }
  const browser = { ...german, accept: 'text/html' }
  const page = await call('GET', FORM, browser)
  t.match(page.text, /<html lang="de">[\s\S]*<h1>Registrieren<\/h1>/)
  t.match(page.text, /\(erforderlich\)/)
  t.match(page.header('content-language'), 'de')
  t.match(page.header('vary'), /accept-language/)
  t.ok(tag(page.text, 'traits.email'))

  const back = await form('traits.email=x&traits.age=many', browser)
  t.equal(back.status, 400)
  t.match(back.text, /<title>Fehler: Registrieren<\/title>/)
  t.match(back.text, /Geben Sie eine E-Mail-Adresse ein/)
  t.match(back.text, /Angaben brauchen Ihre Aufmerksamkeit/)
  const json = await form('traits.email=x', german)
  t.match(json.json().errors, [{ path: 'traits.email', code: 'format', message: /^Geben Sie/ }])
  t.match((await form('traits.email=x')).json().errors, [{ message: /^Enter an e-mail/ }])
  t.match(
    (await call('GET', '/nothing', browser)).text,
    /<h1>Das hat nicht geklappt<\/h1>\s*<p>Unter dieser Adresse/,
  )
  const nodes = await call('GET', FORM, { ...german, accept: 'application/json' })
  t.match(nodes.text, /"label":"[^"]+"/)
})
