/**
 * `npm run docs:site`: the Markdown of docs/ as a static site in dist/site, which needs no scripts. Fails when a link
 * leads nowhere; with --check it only checks and writes nothing.
 */
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { brokenLinks, isFolder, pagePaths, readPage, targetOf } from './docs/pages.mjs'
import { Failure, root, say, script } from './lib/run.mjs'

const INDEX = 'docs/README.md'
const site = join(root, 'dist', 'site')

await script(() => {
  const pages = pagePaths(root).map(path => readPage(root, path))
  const broken = brokenLinks(root, pages)
  if (broken.length > 0) throw new Failure(broken.join('\n'))
  if (process.argv.includes('--check')) return
  rmSync(site, { recursive: true, force: true })
  const order = navigationOrder(pages)
  for (const page of pages) write(htmlName(page.path), whole(page, pages, order))
  write('style.css', readFileSync(new URL('docs/style.css', import.meta.url)))
  say(`${pages.length} pages in dist/site; begin with dist/site/docs/index.html`)
})

/** The pages in the order in which the index names them. */
function navigationOrder(pages) {
  const index = pages.find(({ path }) => path === INDEX)
  const files = index.links.map(href => targetOf(INDEX, href).file)
  return [INDEX, ...new Set(files)].map(file => pages.find(({ path }) => path === file)).filter(Boolean)
}

function whole(page, pages, order) {
  const index = pages.find(({ path }) => path === INDEX)
  const from = htmlName(page.path)
  const href = path => relative(dirname(from), htmlName(path)) || htmlName(path)
  const at = order.indexOf(page)
  const step = (word, to) => (to === undefined ? '' : `<a href="${href(to.path)}">${word}: ${to.title}</a>`)
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
function siteHref(page, link, from) {
  const { external, file, anchor } = targetOf(page, link)
  if (external) return link
  if (isFolder(root, file)) return undefined
  const isPage = pagePaths(root).includes(file)
  if (!isPage) copy(file)
  const to = relative(dirname(from), isPage ? htmlName(file) : file)
  return `${to}${anchor === undefined ? '' : `#${anchor}`}`
}

function htmlName(path) {
  return path.replace(/README\.md$/, 'index.md').replace(/\.md$/, '.html')
}

function write(name, text) {
  mkdirSync(dirname(join(site, name)), { recursive: true })
  writeFileSync(join(site, name), text)
}

function copy(file) {
  mkdirSync(dirname(join(site, file)), { recursive: true })
  copyFileSync(join(root, file), join(site, file))
}
