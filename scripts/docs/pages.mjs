/** The Markdown files that are pages, and what their links lead to. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { Marked } from 'marked'

const ROOT_PAGES = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md']

/** Paths of all pages, seen from the project's root. */
export function pagePaths(root) {
  const below = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  return [...ROOT_PAGES, ...below.filter(name => name.endsWith('.md')).map(name => `docs/${name}`)].sort()
}

/** A heading's anchor, as Markdown hosts make it. */
export const slugOf = text =>
  text
    .toLowerCase()
    .replace(/<[^<>]*>|&[a-z]+;|&#\d+;/g, '')
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')

/**
 * A page: its title, the anchors of its headings, its links, and `render(linkTo)`, where `linkTo` turns a link into an
 * address.
 */
export function readPage(root, path) {
  const source = readFileSync(join(root, path), 'utf8')
  const anchors = []
  const links = []
  rendered(source, {
    heading: id => anchors.push(id),
    linkTo: href => {
      links.push(href)
      return href
    },
  })
  const title = /^# (.+)$/m.exec(source)?.[1] ?? path
  return { path, title, anchors, links, render: linkTo => rendered(source, { heading: () => {}, linkTo }) }
}

function rendered(source, { heading, linkTo }) {
  const times = new Map()
  const renderer = {
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
    .parse(source)
    .replaceAll('<table>', '<div class="table" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>')
}

/** What `href` on the page `from` leads to; `external` for other hosts. */
export function targetOf(from, href) {
  if (/^[a-z]+:/i.test(href)) return { external: true }
  const [file, anchor] = href.split('#')
  return { file: file === '' ? from : normalize(join(dirname(from), file)), anchor }
}

/** Sentences about links of `pages` that lead nowhere. */
export function brokenLinks(root, pages) {
  const byPath = new Map(pages.map(page => [page.path, page]))
  return pages.flatMap(({ path, links }) =>
    links.flatMap(href => {
      const { external, file, anchor } = targetOf(path, href)
      if (external) return []
      if (!existsSync(join(root, file))) return [`${path}: ${href} leads to no file`]
      const page = byPath.get(file)
      if (anchor === undefined || page === undefined || page.anchors.includes(anchor)) return []
      return [`${path}: ${href} leads to no heading of ${file}`]
    }),
  )
}

/** True for a folder, which a site cannot show. */
export const isFolder = (root, file) => statSync(join(root, file)).isDirectory()
