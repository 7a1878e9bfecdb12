/** The form as accessible HTML that works without scripts (WCAG 2.2: 1.3.1, 3.3.1 to 3.3.3). */

import { attributes, type Html, html } from '../../http/page.js'
import type { FieldError } from '../decode/messages.js'
import type { Input } from './inputs.js'
import type { FormNode, NodeGroup } from './nodes.js'

/** The target of a form, and what it contains besides its nodes. */
export interface FormFrame {
  readonly action: string
  readonly submit: string
  /** Values of hidden fields, by name. */
  readonly hidden: Readonly<Record<string, string>>
  /** Translates texts of the page; nodes and errors are translated already. */
  readonly say: (text: string) => string
}

/** A form; if there are errors, a summary with links to the fields comes first and has the focus. */
export function renderForm(
  { action, submit, hidden, say }: FormFrame,
  nodes: readonly FormNode[],
  errors: readonly FieldError[],
): Html {
  return html`${errors.length > 0 ? summary(nodes, errors, say) : undefined}
<form method="post"${attributes({ action })}>
${Object.entries(hidden).map(([name, value]) => hiddenInput(name, value))}
${nodes.map(node => renderNode(node, say))}
<p><button type="submit">${say(submit)}</button></p>
</form>`
}

function hiddenInput(name: string, value: string): Html {
  return html`<input${attributes({ type: 'hidden', name, value })}>`
}

function summary(nodes: readonly FormNode[], errors: readonly FieldError[], say: FormFrame['say']): Html {
  const fields = flattened(nodes)
  const known = new Set(fields.map(({ name }) => name))
  const items = [
    ...errors
      .filter(({ path }) => !known.has(path))
      .map(({ path, message }) => html`<li>${path === '' ? '' : `${path}: `}${message}</li>\n`),
    ...fields.flatMap(({ name, label, messages }) =>
      messages.map(
        message => html`<li><a${attributes({ href: `#${idOf(name)}` })}>${label}</a>: ${message}</li>\n`,
      ),
    ),
  ]
  const count = errors.length === 1 ? 'One answer needs' : `${errors.length} answers need`
  return html`<div class="summary" role="alert" tabindex="-1" autofocus><h2>${say(`${count} your attention`)}</h2>
<ul>
${items}</ul></div>`
}

function flattened(nodes: readonly FormNode[]): FormNode[] {
  return nodes.flatMap(node => (node.type === 'input' ? [node] : [node, ...flattened(node.nodes)]))
}

function renderNode(node: FormNode, say: FormFrame['say']): Html {
  if (node.type !== 'input') return renderGroup(node, say)
  return node.input === 'checkbox' ? renderCheckbox(node, say) : renderField(node, say)
}

function renderGroup(group: NodeGroup, say: FormFrame['say']): Html {
  const id = idOf(group.name)
  return html`<fieldset${attributes({ id, tabindex: '-1', 'aria-describedby': describedBy(group) })}>
<legend>${group.label}</legend>
${notes(group)}${group.nodes.map(node => renderNode(node, say))}${
  // A list without rows still sends a blank value, so that it comes back empty rather than missing.
  group.type === 'list' && group.nodes.length === 0 ? hiddenInput(group.name, '') : undefined
}
</fieldset>\n`
}

function renderField(node: Input, say: FormFrame['say']): Html {
  const id = idOf(node.name)
  const shared = {
    id,
    name: node.name,
    required: node.required ? '' : undefined,
    'aria-invalid': node.messages.length > 0 ? 'true' : undefined,
    'aria-describedby': describedBy(node),
    ...node.attributes,
  }
  return html`<div class="field"><label${attributes({ for: id })}>${node.label}${
    node.required ? html` <span class="required">${say('(required)')}</span>` : undefined
  }</label>
${notes(node)}${control(node, shared)}</div>\n`
}

function control(node: Input, shared: Record<string, string | undefined>): Html {
  if (node.input === 'select') {
    const options = (node.options ?? []).map(
      ({ value, label }) =>
        html`<option${attributes({ value, selected: value === node.value ? '' : undefined })}>${label}</option>`,
    )
    return html`<select${attributes(shared)}>${options}</select>`
  }
  // Browsers drop the first line break of a textarea.
  if (node.input === 'textarea')
    return html`<textarea${attributes(shared)} rows="4">\n${node.value}</textarea>`
  return html`<input${attributes({ type: node.input, ...shared, value: node.value })}>`
}

/** The hidden twin sends "false" when the box is not ticked. */
function renderCheckbox(node: Input, say: FormFrame['say']): Html {
  const id = idOf(node.name)
  const box = {
    type: 'checkbox',
    id,
    name: node.name,
    value: 'true',
    checked: node.value === 'true' ? '' : undefined,
    required: node.required ? '' : undefined,
    'aria-invalid': node.messages.length > 0 ? 'true' : undefined,
    'aria-describedby': describedBy(node),
  }
  return html`<div class="field check">${hiddenInput(node.name, 'false')}
<input${attributes(box)}> <label${attributes({ for: id })}>${node.label}${
    node.required ? html` <span class="required">${say('(required)')}</span>` : undefined
  }</label>
${notes(node)}</div>\n`
}

function notes(node: FormNode): Html {
  const id = idOf(node.name)
  return html`${
    node.description === undefined
      ? undefined
      : html`<p class="hint"${attributes({ id: `${id}-hint` })}>${node.description}</p>\n`
  }${
    node.messages.length === 0
      ? undefined
      : html`<p class="error"${attributes({ id: `${id}-error` })}>${node.messages.join(' ')}</p>\n`
  }`
}

function describedBy(node: FormNode): string | undefined {
  const id = idOf(node.name)
  const ids = [
    ...(node.description === undefined ? [] : [`${id}-hint`]),
    ...(node.messages.length === 0 ? [] : [`${id}-error`]),
  ]
  return ids.length === 0 ? undefined : ids.join(' ')
}

/** An element id for a field name: ids may contain no spaces, and links to these need no escaping. */
function idOf(name: string): string {
  return name.replace(/[^A-Za-z0-9.-]/g, character => `_${character.charCodeAt(0).toString(16)}`)
}
