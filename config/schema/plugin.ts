/** The shape of an entry of `identify` or `observe`: the name of a plugin, and that plugin's own keys. */
import { type TSchema, Type } from 'typebox'
import { parseDuration } from './duration.js'
import { when } from './fields.js'

/** Config schemas of the plugins, by plugin name; passed in because this folder imports nothing from the gateway. */
export interface PluginSchemas {
  readonly identify: Readonly<Record<string, TSchema>>
  /**
   * A limit plugin's name is the `kind` of its policy files; its schema describes a rule's keys besides the common
   * ones.
   */
  readonly limit: Readonly<Record<string, TSchema>>
  readonly observe: Readonly<Record<string, TSchema>>
}

/** An identifier or observer: its plugin, and that plugin's own keys. */
export interface PluginEntry {
  readonly plugin: string
  readonly [key: string]: unknown
}

/** One of the given plugins with its settings; `host` is short for `{ plugin: host }`. */
export function pluginEntry(schemas: Readonly<Record<string, TSchema>>) {
  const names = Object.keys(schemas)
  const whole = names.map(name => {
    const plugin = { const: name, description: 'Name of the plugin.' }
    const own = schemas[name] as { properties?: object; required?: string[] }
    return when(
      { type: 'object', properties: { plugin: { const: name } }, required: ['plugin'] },
      { ...own, properties: { ...own.properties, plugin }, additionalProperties: false },
      {},
    )
  })
  return Type.Unsafe<PluginEntry>({
    type: ['string', 'object'],
    expected: 'the name of a plugin, or a map with "plugin" and its settings',
    shorthand: Object.fromEntries(names.map(name => [name, { plugin: name, ...defaultsOf(schemas[name]) }])),
    ...when(
      { type: 'string' },
      { enum: names },
      { required: ['plugin'], properties: { plugin: { enum: names } }, allOf: whole },
    ),
  })
}

/** No observer is built in, so without plugins the list must be empty. */
export function observerList(schemas: PluginSchemas['observe']) {
  const description = 'Plugins that are notified of every finished request.'
  if (Object.keys(schemas).length > 0) {
    return Type.Array(pluginEntry(schemas), { default: [], description })
  }
  const expected = 'an empty list, because no loaded plugin observes requests'
  return Type.Array(Type.Unsafe<PluginEntry>({}), { default: [], maxItems: 0, expected, description })
}

/** A plugin's default settings. */
function defaultsOf(schema: TSchema | undefined): Record<string, unknown> {
  const properties = (
    schema as { properties?: Record<string, { default?: unknown; duration?: object }> } | undefined
  )?.properties
  const written = Object.entries(properties ?? {}).filter(([, property]) => property.default !== undefined)
  return Object.fromEntries(
    written.map(([key, { default: value, duration }]) => [
      key,
      duration ? parseDuration(String(value)) : value,
    ]),
  )
}
