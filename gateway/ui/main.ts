/** The operator's page: passes the stream of snapshots to the parts that show them. */
import type { LiveRule, LiveSnapshot } from '../admin/live-snapshot.js'
import { promptKey, startKeyPrompt } from './api.js'
import { Attention } from './attention.js'
import { Connection, type ConnectionState } from './connection.js'
import { button, find, setClass, setText } from './dom.js'
import { count, length, rate, time } from './format.js'
import { HistoryPanel } from './history.js'
import { KeysTable } from './keys.js'
import { OverridesTable } from './overrides.js'
import { startQuestions } from './question.js'
import { RoutesTable } from './routes.js'
import { RulesTable } from './rules.js'
import { Standing } from './standing.js'
import { addressesOf, closestTable, projectsTable, slotsTable, upstreamsTable } from './tables.js'

const history = new HistoryPanel()
const attention = new Attention(history.show)
const standing = new Standing()
const overrides = new OverridesTable()
const rules = new RulesTable(history.show)
const projects = projectsTable(history.show)
const closest = closestTable(history.show, ruleOf)
const slots = slotsTable()
const keys = new KeysTable()
const routes = new RoutesTable()
const upstreams = upstreamsTable()
for (const [id, { element }] of Object.entries({
  rules,
  projects,
  closest,
  slots,
  keys,
  routes,
  upstreams,
})) {
  find(`${id}-table`).append(element)
}

let last: LiveSnapshot | undefined
let state: ConnectionState = { state: 'connecting' }

function ruleOf(id: string): LiveRule | undefined {
  return last?.rules.find(rule => rule.id === id)
}

function show(snapshot: LiveSnapshot): void {
  last = snapshot
  find('overview').hidden = false
  showNumbers(snapshot)
  attention.update(snapshot)
  history.update(snapshot)
  rules.update(snapshot.rules)
  projects.update(snapshot.projects)
  closest.update(snapshot.closest)
  slots.update(snapshot.slots)
  void keys.update()
  void routes.update()
  upstreams.update(addressesOf(snapshot.upstreams))
  standing.update(snapshot)
  overrides.update(snapshot)
}

/** Updates the state in the page's header, and the banner that appears when the data is out of date. */
function showConnection(): void {
  const age = last === undefined ? undefined : Date.now() - Date.parse(last.at)
  const isLive = state.state === 'live'
  setText(
    find('connection'),
    isLive ? `Live, ${time(Date.now())} UTC` : state.state === 'connecting' ? 'Connecting…' : 'Not live',
  )
  setClass(find('connection'), `state ${isLive ? 'good' : state.state === 'lost' ? 'bad' : 'quiet'}`)
  find('banner').hidden = state.state !== 'lost'
  document.body.classList.toggle('stale', state.state === 'lost')
  if (state.state !== 'lost') return
  const shown =
    last === undefined || age === undefined
      ? 'Nothing is shown yet.'
      : `This is the state of ${time(last.at)} UTC, ${length(age)} old.`
  const wait = state.retryAt === undefined ? 0 : Math.ceil((state.retryAt - Date.now()) / 1000)
  const next = wait <= 0 ? 'Trying again now.' : `Next try in ${length(wait * 1000)}.`
  setText(find('banner-words'), `Connection lost. ${state.reason} ${shown} ${next}`)
}

const connection = new Connection({
  snapshot: show,
  standing(next) {
    state = next
    if (next.state === 'key') {
      find('overview').hidden = true
      promptKey(next.status, next.reason)
    }
    if (next.state === 'live') find('key-prompt').hidden = true
    if (next.state === 'lost') setText(find('announced'), `Connection lost. ${next.reason}`)
    showConnection()
  },
})
setInterval(showConnection, 1000)
find('banner').append(button('Try now', () => connection.connect()))
startKeyPrompt(() => connection.connect())
startQuestions()
connection.connect()

function showNumbers({ rates, rules, in_flight, slots }: LiveSnapshot): void {
  setText(find('now-requests'), rate(rates.requests))
  setText(find('now-refused'), rate(rates.refused))
  setText(find('now-would'), rate(rates.would_refuse))
  setText(find('now-ours'), rate(rates.errors_of_ours))
  setText(find('now-upstreams'), rate(rates.errors_of_upstreams))
  setText(find('now-in-flight'), count(in_flight))
  setText(find('now-waiting'), count(rules.reduce((sum, { waiting }) => sum + waiting, 0)))
  setText(find('now-slots'), count(slots.reduce((sum, { held }) => sum + held, 0)))
}
