/** Reserve and settle where a window is a calendar month. */
import t from 'tap'
import { onRedis, settles } from './reserve-scene.js'

settles(t, {
  name: 'on two gateways, in a month',
  runs: 2,
  open: onRedis,
  quota: 'windows: [{ name: month, requests: 10000, per: month }, { name: hour, requests: 20000, per: 1h }]',
})
