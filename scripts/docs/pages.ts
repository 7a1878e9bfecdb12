/** The Markdown files that are pages, and what their links lead to. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { Marked, type RendererObject } from 'marked'
import { inProject } from '../lib/run.mjs'

const ROOT_PAGES = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md']

/** Paths of all pages, seen from the project's root. */
export function pagePaths(): string[] {
  const below = readdirSync(inProject('docs'), { recursive: true, encoding: 'utf8' })
  return [...ROOT_PAGES, ...below.filter(name => name.endsWith('.md')).map(name => `docs/${name}`)].sort()
}

/** A heading's anchor, as Markdown hosts make it. */
const slugOf = (text: string): string =>
  text
    .toLowerCase()
    .replace(/<[^<>]*>|&[a-z]+;|&#\d+;/g, '')
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')

/** Turns a link into an address; undefined for one that cannot be shown. */
type LinkTo = (href: string) => string | undefined

export interface Page {
  readonly path: string
  readonly title: string
  /** Of its headings. */
  readonly anchors: readonly string[]
  readonly links: readonly string[]
  /** As HTML. */
  render(linkTo: LinkTo): string
}

export function readPage(path: string): Page {
  const source = readFileSync(inProject(path), 'utf8')
  const [anchors, links]: [string[], string[]] = [[], []]
  const collect = (href: string) => {
    links.push(href)
    return href
  }
  rendered(source, collect, id => anchors.push(id))
  const title = /^# (.+)$/m.exec(source)?.[1] ?? path
  return { path, title, anchors, links, render: linkTo => rendered(source, linkTo) }
}

function rendered(
  source: string,
  linkTo: LinkTo,
  heading: (id: string) => unknown = () => undefined,
): string {
  const times = new Map<string, number>()
  const renderer: RendererObject = {
    heading({ tokens, depth }) {
      const text = this.parser.parseInline(tokens)
      const slug = slugOf(text)
      const before = times.get(slug) ?? 0
      times.set(slug, before + 1)
      const id = before === 0 ? slug : `${slug}-${before}`
      heading(id)
      return `<h${depth} id="${id}">${text}</h${depth}>\n`
    },
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens)
      const target = linkTo(href)
      return target === undefined ? text : `<a href="${target}">${text}</a>`
    },
    image({ href, text }) {
      return `<img src="${linkTo(href)}" alt="${text.replaceAll('"', '&quot;')}">`
    },
  }
  // Wide tables scroll on their own, by keyboard too.
  return new Marked({ renderer })
    .parse(source, { async: false })
    .replaceAll('<table>', '<div class="table" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>')
}

/** The file that `href` on the page `from` leads to, and its anchor there; undefined for other hosts. */
export function targetOf(
  from: string,
  href: string,
): { file: string; anchor: string | undefined } | undefined {
  if (/^[a-z]+:/i.test(href)) return undefined
  const [file = '', anchor] = href.split('#')
  return { file: file === '' ? from : normalize(join(dirname(from), file)), anchor }
}

/** Sentences about links of `pages` that lead nowhere. */
export function brokenLinks(pages: readonly Page[]): string[] {
  const byPath = new Map(pages.map(page => [page.path, page]))
  return pages.flatMap(({ path, links }) =>
    links.flatMap(href => {
      const target = targetOf(path, href)
      if (target === undefined) return []
      const { file, anchor } = target
      if (!existsSync(inProject(file))) return [`${path}: ${href} leads to no file`]
      const anchors = byPath.get(file)?.anchors
      if (anchor === undefined || anchors === undefined || anchors.includes(anchor)) return []
      return [`${path}: ${href} leads to no heading of ${file}`]
    }),
  )
}
