/** The dialog before an override: it says exactly what will happen, asks why, and stays open when the gateway refuses. */
import { sentence } from './api.js'
import { button, find, make, setText } from './dom.js'

export interface Field {
  readonly name: string
  readonly label: string
  /** The allowed values, each with its label, instead of free text. */
  readonly choices?: readonly (readonly [string, string])[]
  readonly value?: string
  readonly hint?: string
  readonly optional?: true
}

export type Values = Readonly<Record<string, string>>

export interface Action {
  readonly title: string
  /** Label of the button that performs the override. */
  readonly verb: string
  readonly fields: readonly Field[]
  /** What will happen, given the values filled in so far. */
  foretell(values: Values): string
  /** Performs the override; resolves to a sentence that says what was done. */
  run(values: Values): Promise<string>
}

const WHO = 'sluice-operator'
const WHY: Field = { name: 'why', label: 'Why', hint: 'Shown in the log and in the list of overrides.' }

/** Opens the dialog. The focus goes back to where it was. */
export function confirmAction(action: Action): void {
  const by: Field = {
    name: 'by',
    label: 'Who you are',
    hint: 'Default: your address.',
    value: localStorage.getItem(WHO) ?? '',
    optional: true,
  }
  const fields = [...action.fields, WHY, by]
  const inputs = new Map(fields.map(field => [field.name, inputOf(field)]))
  const values = (): Values =>
    Object.fromEntries([...inputs].map(([name, input]) => [name, input.value.trim()]))
  const foretold = make('p', { class: 'foretold', 'aria-live': 'polite' })
  const fault = make('p', { class: 'fault', role: 'alert' })
  const submit = make('button', { type: 'submit', class: 'primary' }, action.verb)
  const form = make(
    'form',
    {},
    make('h2', { id: 'override-title' }, action.title),
    ...fields.map(field => labelled(field, inputs.get(field.name) as HTMLElement)),
    foretold,
    fault,
    make(
      'div',
      { class: 'buttons' },
      button('Cancel', () => dialog.close()),
      submit,
    ),
  )
  const dialog = make('dialog', { 'aria-labelledby': 'override-title' }, form)
  const update = () => setText(foretold, action.foretell(values()))
  form.addEventListener('input', update)
  form.addEventListener('submit', async event => {
    event.preventDefault()
    submit.disabled = true
    setText(fault, '')
    try {
      const { by = '' } = values()
      localStorage.setItem(WHO, by)
      const done = await action.run(values())
      dialog.close()
      setText(find('said'), done)
    } catch (error) {
      setText(fault, sentence(error))
    } finally {
      submit.disabled = false
    }
  })
  dialog.addEventListener('close', () => dialog.remove())
  document.body.append(dialog)
  update()
  dialog.showModal()
}

type Input = HTMLInputElement | HTMLSelectElement

function inputOf({ name, choices, value = '', optional }: Field): Input {
  const attributes = {
    id: `override-${name}`,
    name,
    'aria-describedby': `override-${name}-hint`,
    required: !optional,
  }
  if (choices === undefined) {
    return make('input', { ...attributes, value, autocomplete: 'off', spellcheck: 'false' })
  }
  const options = choices.map(([value, label]) => make('option', { value }, label))
  const select = make('select', { ...attributes, required: false }, ...options)
  if (value !== '') select.value = value
  return select
}

function labelled({ name, label, hint = '', optional }: Field, input: HTMLElement): HTMLElement {
  return make(
    'p',
    { class: 'field' },
    make('label', { for: `override-${name}` }, optional ? `${label} (optional)` : label),
    input,
    make('small', { id: `override-${name}-hint` }, hint),
  )
}

/** The named values that are not empty: only these are sent. */
export function given(values: Values, ...names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap(name => (values[name] ? [[name, values[name]]] : [])))
}
