/** What is in force and what it runs on: revision, last reload, changes to the former revision, store, processes. */
import type { LiveReload, LiveSnapshot } from '../admin/live-snapshot.js'
import { askJson, sentence } from './api.js'
import { button, find, make, setText, state } from './dom.js'
import { bytes, length, moment, shortRevision } from './format.js'

interface Changes {
  readonly from: string
  readonly to: string
  readonly changes: readonly { readonly sentence: string }[]
}

export class Standing {
  #drawn = ''

  update(snapshot: LiveSnapshot): void {
    const { revision, reload } = snapshot
    setText(find('loaded'), `In force since ${moment(snapshot.loaded_at)}.`)
    setText(find('counting'), `Counted since ${moment(snapshot.since)}.`)
    find('store').replaceChildren(...storeWords(snapshot))
    find('processes').replaceChildren(...processes(snapshot))
    const drawn = JSON.stringify([revision, reload])
    if (drawn === this.#drawn) return
    this.#drawn = drawn
    setText(find('revision'), shortRevision(revision))
    find('revision').title = revision
    find('changes').replaceChildren(button('What changed', () => void showChanges()))
    find('reload').replaceChildren(...reloadWords(reload))
  }
}

async function showChanges(): Promise<void> {
  const place = find('changes')
  try {
    place.replaceChildren(changesWords(await askJson<Changes | null>('/changes')))
  } catch (error) {
    place.append(make('p', { class: 'fault', role: 'alert' }, sentence(error)))
    return
  }
  // The button is gone: what it brought has the focus.
  place.focus()
}

function changesWords(changes: Changes | null): HTMLElement {
  if (changes === null) return make('p', {}, 'This is the first revision since the gateway was started.')
  const from = `Since ${shortRevision(changes.from)}:`
  if (changes.changes.length === 0) return make('p', {}, `${from} nothing that decides about a request.`)
  const items = changes.changes.map(({ sentence }) => make('li', {}, sentence))
  return make('div', {}, make('p', {}, from), make('ul', {}, ...items))
}

function reloadWords(reload: LiveReload | null): HTMLElement[] {
  if (reload === null) return [make('p', {}, 'No reload since the start.')]
  const kind = reload.result === 'refused' ? 'bad' : 'good'
  const line = make('p', {}, state(kind, reload.result), ` ${moment(reload.at)}`)
  if (reload.problems.length === 0) return [line]
  const items = reload.problems.map(({ file, line, column, path, sentence }) =>
    make('li', {}, make('code', {}, `${file}:${line}:${column}`), ` ${path}: ${sentence}`),
  )
  return [line, make('ul', { class: 'problems' }, ...items)]
}

function storeWords({ store }: LiveSnapshot): (Node | string)[] {
  if (store.kind === 'memory') return ['Counts in memory, each process by itself.']
  const word = store.state === 'ok' ? state('good', 'Redis ok') : state('bad', 'Redis away')
  return [word, ` ${store.address ?? ''} since ${moment(store.since)}`]
}

function processes({ process, workers, missing }: LiveSnapshot): HTMLElement[] {
  const told = workers.map(({ pid, started_at, answers, loop_delay_ms }) => {
    const isWell = answers && !missing.includes(pid)
    const words = `worker ${pid}, up ${length(Date.now() - Date.parse(started_at))}, event loop ${length(loop_delay_ms)} late`
    return make('li', {}, isWell ? state('good', 'answers') : state('bad', 'does not answer'), ` ${words}`)
  })
  if (process === undefined) return told
  const { pid, started_at, loop_delay_ms, rss_bytes } = process
  const words = `process ${pid}, up ${length(Date.now() - Date.parse(started_at))}, event loop ${length(loop_delay_ms)} late, ${bytes(rss_bytes)}`
  return [make('li', {}, state('good', 'runs'), ` ${words}`), ...told]
}
