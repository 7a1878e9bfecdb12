/** The policy in force and its processes: revision, last reload, changes to the former revision, store, processes. */
import type { LiveChanges, LiveReload, LiveSnapshot } from '../admin/live-snapshot.js'
import { askJson, sentence } from './api.js'
import { button, find, make, setText, state } from './dom.js'
import { bytes, length, moment, shortRevision } from './format.js'

const MOST_PROBLEMS = 10

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
    place.replaceChildren(changesWords(await askJson<LiveChanges | null>('/changes')))
  } catch (error) {
    place.querySelector('.fault')?.remove()
    place.append(make('p', { class: 'fault', role: 'alert' }, sentence(error)))
    return
  }
  // The button has been replaced, so the focus moves to the result.
  place.focus()
}

function changesWords(changes: LiveChanges | null): HTMLElement {
  if (changes === null) return make('p', {}, 'This is the first revision since the gateway was started.')
  const since = `Changed at ${moment(changes.at)}, from ${shortRevision(changes.from)}:`
  if (changes.changes.length === 0) return make('p', {}, `${since} nothing that decides about a request.`)
  const items = changes.changes.map(({ heading, sentence }) => make('li', {}, `${heading}: ${sentence}`))
  return make('div', {}, make('p', {}, since), make('ul', {}, ...items))
}

function reloadWords(reload: LiveReload | null): HTMLElement[] {
  if (reload === null) return [make('p', {}, 'No reload since the start.')]
  const kind = reload.result === 'refused' ? 'bad' : 'good'
  const line = make('p', {}, state(kind, reload.result), ` ${moment(reload.at)}`)
  if (reload.problems.length === 0) return [line]
  const items = reload.problems
    .slice(0, MOST_PROBLEMS)
    .map(({ file, line, column, path, sentence }) =>
      make('li', {}, make('code', {}, `${file}:${line}:${column}`), ` ${path}: ${sentence}`),
    )
  const others = reload.problems.length - items.length
  if (others > 0) items.push(make('li', {}, `and ${others} more: sluice check names them all`))
  return [line, make('ul', {}, ...items)]
}

function storeWords({ store }: LiveSnapshot): (Node | string)[] {
  if (store.kind === 'memory') return ['Counts in memory, each process by itself.']
  const word = store.state === 'ok' ? state('good', 'Redis ok') : state('bad', 'Redis away')
  return [word, ` ${store.address ?? ''} since ${moment(store.since)}`]
}

function processes({ process, workers }: LiveSnapshot): HTMLElement[] {
  const seen = workers.map(worker => ({ ...worker, name: 'worker' }))
  const all = process === undefined ? seen : [{ ...process, answers: true, name: 'process' }, ...seen]
  return all.map(({ name, pid, started_at, answers, loop_delay_ms, rss_bytes }) => {
    const words = [
      ` ${name} ${pid}, up ${length(Date.now() - Date.parse(started_at))}`,
      ...(loop_delay_ms === null ? [] : [`event loop ${length(loop_delay_ms)} late`]),
      ...(rss_bytes === null ? [] : [bytes(rss_bytes)]),
    ]
    return make(
      'li',
      {},
      answers ? state('good', 'answers') : state('bad', 'does not answer'),
      words.join(', '),
    )
  })
}
