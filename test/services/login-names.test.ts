import fc from 'fast-check'
import t from 'tap'
import { foldLoginName } from '../../services/login-names.js'
import { cpuMs } from '../helpers/cpu-time.js'

/** Names that count as one. */
const sameNames = [
  ['ada@x.example', 'ADA@X.EXAMPLE'],
  ['ΑΣ@x', 'ας@x', 'ασ@x', 'ΑΣ@X'],
  ['straße@x', 'strasse@x', 'STRASSE@x', 'STRAẞE@x'],
  ['süß@x', 'su\u0308ss@x', 'SÜSS@x'],
  ['sam@x', 'ſam@x'],
  ['kelvin', '\u212Aelvin'],
  ['ada', 'ada ', ' ada', 'ada\u00A0', 'ada\u3000'],
  ['ada lovelace', 'ada  lovelace', 'ada\u2003lovelace'],
  ['ada', 'a\u200Bda', 'ada\u200D', '\uFEFFada', 'a\u00ADda', 'ada\u202E', 'a\uFE0Fda', 'ada\u{E0041}'],
  ['ada', 'ada\u0000', 'a\u0008da'],
  ['ada', 'ａｄａ', 'ⓐⓓⓐ', '𝐚𝐝𝐚'],
  ['file', 'ﬁle'],
]

t.test('names that differ by letter case, forms or invisible characters alone are the same', async t => {
  for (const names of sameNames) {
    t.same([...new Set(names.map(foldLoginName))].length, 1, JSON.stringify(names))
  }
})

t.test('names with different letters are different', async t => {
  const different = ['ada', 'adá', 'аda', 'a.da', 'ad a', 'a-da', 'ılgın', 'ilgin', '艾達', '']
  t.equal(new Set(different.map(foldLoginName)).size, different.length)
})

t.test('a folded name stays as it is', async () => {
  const name = fc.string({ unit: 'binary', maxLength: 20 })
  fc.assert(fc.property(name, text => foldLoginName(foldLoginName(text)) === foldLoginName(text)))
  const letters = fc.constantFrom(...sameNames.flat().join(''))
  fc.assert(
    fc.property(fc.array(letters), all => {
      const folded = foldLoginName(all.join(''))
      return foldLoginName(folded) === folded
    }),
  )
})

t.test('folding the longest name costs little', async t => {
  for (const unit of [' ', 'ß', '\u200B', 'a\u0323\u0307', '\uFDFA', 'Σ']) {
    const name = unit.repeat(1024 / unit.length)
    const times = [await cpuMs(() => foldLoginName(name)), await cpuMs(() => foldLoginName(name))]
    t.ok(Math.min(...times) < 10, JSON.stringify(unit))
  }
})
