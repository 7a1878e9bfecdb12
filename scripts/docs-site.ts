/**
 * `npm run docs:site`: the Markdown of docs/ as a static site in dist/site, which needs no scripts. Fails when a link
 * leads nowhere.
 */
import { cpSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { brokenLinks, type Page, pagePaths, readPage, targetOf } from './docs/pages.js'
import { Failure, inProject, say, script } from './lib/run.mjs'

const INDEX = 'docs/README.md'
const SITE = inProject('dist', 'site')
const PATHS = pagePaths()

await script(() => {
  const pages = PATHS.map(readPage)
  const broken = brokenLinks(pages)
  if (broken.length > 0) throw new Failure(broken.join('\n'))
  rmSync(SITE, { recursive: true, force: true })
  const index = pages.find(({ path }) => path === INDEX) as Page
  const order = inOrder(index, pages)
  for (const page of pages) {
    const file = join(SITE, htmlName(page.path))
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, htmlOf(page, index, order))
  }
  cpSync(inProject('scripts', 'docs', 'style.css'), join(SITE, 'style.css'))
  say(`${pages.length} pages in dist/site; begin with dist/site/docs/index.html`)
})

/** The pages in the order in which the index names them. */
function inOrder(index: Page, pages: readonly Page[]): Page[] {
  const files = new Set([INDEX, ...index.links.map(href => targetOf(INDEX, href)?.file)])
  return [...files].flatMap(file => pages.find(({ path }) => path === file) ?? [])
}

function htmlOf(page: Page, index: Page, order: readonly Page[]): string {
  const from = htmlName(page.path)
  const href = (path: string) => relative(dirname(from), htmlName(path)) || htmlName(path)
  const at = order.indexOf(page)
  const step = (word: string, to?: Page) =>
    to === undefined ? '' : `<a href="${href(to.path)}">${word}: ${to.title}</a>`
  const steps =
    at < 0 ? '' : `<nav class="steps">${step('Back', order[at - 1])}${step('Next', order[at + 1])}</nav>`
  const groups = index
    .render(link => siteHref(INDEX, link, from))
    .replace(/^[\s\S]*?(?=<h2)/, '')
    .replaceAll(' id="', ' data-id="')
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'self'; img-src 'self'">
<title>${page.title.replace(/[<>&`]/g, '')} – Sluice</title>
<link rel="stylesheet" href="${relative(dirname(from), 'style.css')}">
<a class="skip" href="#content">Skip to the content</a>
<header><a href="${href('README.md')}">Sluice</a> <a href="${href(INDEX)}">Documentation</a></header>
<div class="page">
<nav class="all" aria-label="All pages"><details open><summary>All pages</summary>${groups}</details></nav>
<main id="content">
${page.render(link => siteHref(page.path, link, from))}
${steps}
</main>
</div>
</html>
`
}

/** Where a link leads on the site; undefined for what the site cannot show. Copies linked files. */
function siteHref(page: string, link: string, from: string): string | undefined {
  const target = targetOf(page, link)
  if (target === undefined) return link
  const { file, anchor } = target
  if (statSync(inProject(file)).isDirectory()) return undefined
  const isPage = PATHS.includes(file)
  if (!isPage) cpSync(inProject(file), join(SITE, file))
  const to = relative(dirname(from), isPage ? htmlName(file) : file)
  return `${to}${anchor === undefined ? '' : `#${anchor}`}`
}

function htmlName(path: string): string {
  return path.replace(/README\.md$/, 'index.md').replace(/\.md$/, '.html')
}
