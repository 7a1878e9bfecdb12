/** The row of current numbers. */
import type { LiveSnapshot } from '../admin/live-snapshot.js'
import { find, setText } from './dom.js'
import { count, rate } from './format.js'

export function showNumbers({ rates, in_flight, slots }: LiveSnapshot): void {
  setText(find('now-requests'), rate(rates.requests))
  setText(find('now-refused'), rate(rates.refused))
  setText(find('now-would'), rate(rates.would_refuse))
  setText(find('now-ours'), rate(rates.errors_of_ours))
  setText(find('now-upstreams'), rate(rates.errors_of_upstreams))
  setText(find('now-in-flight'), count(in_flight))
  setText(find('now-slots'), count(slots.reduce((sum, { held }) => sum + held, 0)))
}
