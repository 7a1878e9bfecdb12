/**
 * An OpenAPI 3.1 document as one HTML page: no scripts and nothing loaded, so that it needs one request and no
 * dependency.
 */
import { type Html, html, pageKind } from './page.js'

const pages = pageKind({
  style: `
main { max-width: 60rem; }
nav a { margin-right: 1rem; }
details { border: 1px solid var(--line); border-radius: .375rem; margin: .5rem 0; padding: .25rem .75rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--line); }
pre { overflow-x: auto; background: light-dark(#f4f5f7, #17181a); padding: .5rem; }
`,
  referrer: 'no-referrer',
})

export const API_PAGE_HEADERS = pages.headers

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema?: unknown }>>
}
interface Described extends Content {
  readonly description?: string
}
interface ApiOperation {
  readonly summary?: string
  readonly description?: string
  readonly tags?: readonly string[]
  readonly security?: readonly object[]
  readonly parameters?: readonly {
    readonly name: string
    readonly in: string
    readonly required?: boolean
    readonly description?: string
  }[]
  readonly requestBody?: Content
  readonly responses?: Readonly<Record<string, Described>>
}
/** The parts of a document that the page shows. */
interface ApiDocument {
  readonly info: { readonly title: string; readonly description?: string }
  readonly tags?: readonly { readonly name: string; readonly description?: string }[]
  readonly paths?: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>
  readonly components?: { readonly schemas?: Readonly<Record<string, unknown>> }
}

/** The page of `document`, which is served at `documentPath`. */
export function apiPage(document: object, documentPath: string): string {
  const { info, tags = [], paths = {}, components } = document as ApiDocument
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  const schemas = Object.entries(components?.schemas ?? {})
  const content = html`${paragraphs(info.description)}
<p><a href="${documentPath}">The OpenAPI document</a></p>
<nav>${tags.map(({ name }) => html`<a href="#${anchor(name)}">${name}</a>`)}${schemas.length > 0 ? html`<a href="#schemas">Schemas</a>` : undefined}</nav>
${tags.map(
  ({ name, description }) => html`<h2 id="${anchor(name)}">${name}</h2>
${paragraphs(description)}
${operations.filter(({ operation }) => operation.tags?.includes(name)).map(section)}`,
)}
${schemas.length > 0 ? html`<h2 id="schemas">Schemas</h2>` : undefined}
${schemas.map(([name, schema]) => html`<details id="schema-${name}"><summary>${name}</summary>${json(schema)}</details>\n`)}`
  return pages.write({ title: info.title, content })
}

interface Section {
  readonly method: string
  readonly path: string
  readonly operation: ApiOperation
}

function section({ method, path, operation }: Section): Html {
  const { summary, description, parameters = [], requestBody, responses = {}, security = [] } = operation
  const keys = security.flatMap(one => Object.keys(one)).join(' or ')
  return html`<details><summary><code>${method} ${path}</code> ${summary}</summary>
${paragraphs(description)}
${keys === '' ? undefined : html`<p>Key: ${keys}</p>`}
${
  parameters.length === 0
    ? undefined
    : html`<table><tr><th>Parameter</th><th>In</th><th></th></tr>${parameters.map(
        one =>
          html`<tr><td><code>${one.name}</code></td><td>${one.in}${one.required ? ', required' : ''}</td><td>${one.description}</td></tr>`,
      )}</table>`
}
${requestBody === undefined ? undefined : html`<h3>Body</h3>${content(requestBody)}`}
<h3>Answers</h3>
${Object.entries(responses).map(([status, answer]) => html`<p><code>${status}</code> ${answer.description}</p>${content(answer)}`)}
</details>
`
}

function content(of: Content): Html[] {
  return Object.entries(of.content ?? {}).map(
    ([type, { schema }]) =>
      html`<p><code>${type}</code></p>${schema === undefined ? undefined : shape(schema)}`,
  )
}

/** A schema that is only a reference becomes a link; others are shown in full. */
function shape(schema: unknown): Html {
  const { $ref } = schema as { readonly $ref?: string }
  const name = $ref?.replace(/^#\/components\/schemas\//, '')
  return name === undefined ? json(schema) : html`<p><a href="#schema-${name}">${name}</a></p>`
}

const json = (value: unknown): Html => html`<pre>${JSON.stringify(value, null, 2)}</pre>`
const paragraphs = (text = ''): Html[] =>
  text.split('\n\n').flatMap(one => (one === '' ? [] : [html`<p>${one}</p>`]))
const anchor = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]+/g, '-')
