import t from 'tap'
import { databaseOf, patienceOf } from '../../../services/storage/mongodb.js'

t.test('a MongoDB URL without a database or timeouts gets defaults', async t => {
  const names: [string, string][] = [
    ['mongodb://h', 'sluice'],
    ['mongodb://h/', 'sluice'],
    ['mongodb://u:p@h1:1,h2:2/?replicaSet=r', 'sluice'],
    ['mongodb://h?appName=a/b', 'sluice'],
    ['mongodb+srv://u:p@h/mine?w=1', 'mine'],
    ['mongodb://h:1/my%2Down', 'my-own'],
    ['mongodb://a:1,b:2/acme?authSource=admin', 'acme'],
    ['mongodb://a/a%20b', 'a b'],
  ]
  for (const [url, name] of names) t.equal(databaseOf(url), name, url)
  const patience = {
    ...{ serverSelectionTimeoutMS: 5000, connectTimeoutMS: 5000 },
    ...{ socketTimeoutMS: 10_000, waitQueueTimeoutMS: 10_000 },
  }
  t.same(patienceOf('mongodb://h'), patience)
  const { socketTimeoutMS: _given, ...rest } = patience
  t.same(patienceOf('mongodb://h/?w=1&sockettimeoutms=0'), rest, 'a timeout in the URL takes precedence')
})
