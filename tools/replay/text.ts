/** Prints a replay as text. */
import type { Io } from '../io.js'
import { intakeText, type LogIntake } from '../log/intake.js'
import { columns, count, grouped, minuteOf, percent, printable, table, wrap } from '../text.js'
import type {
  Offender,
  PolicyDocument,
  RecordedDocument,
  ReplayDifference,
  ReplayDocument,
} from './document.js'

/** Number of hours and projects with the most refusals that are listed. */
const SHOWN = 10

export function replayText(replay: ReplayDocument, intake: LogIntake, io: Io): string {
  const { candidate, against, difference, recorded, accuracy } = replay
  const sections = [intakeText(intake, io), policyText(candidate, io)]
  if (against !== null) sections.push(policyText(against, io))
  if (difference !== null) sections.push(differenceText(difference, io))
  if (recorded !== null) sections.push(recordedText(recorded, io))
  sections.push(accuracyText(accuracy, io))
  return sections.join('\n')
}

function heading(text: string, io: Io): string {
  return `${io.style('bold', wrap(printable(text), io.columns))}\n`
}

function sentences(texts: readonly string[], io: Io): string {
  return texts.map(text => `${wrap(printable(text), io.columns)}\n`).join('')
}

function policyText(policy: PolicyDocument, io: Io): string {
  const { policies, requests, admitted, refused, wouldRefuse, unserved } = policy
  const reported = [
    `${count(requests, 'request')}: ${grouped(admitted)} admitted, ${grouped(refused)} refused (${percent(share(refused, requests))}).`,
  ]
  if (wouldRefuse > 0) reported.push(`Report-only rules would have refused ${grouped(wouldRefuse)}.`)
  for (const [code, times] of Object.entries(unserved)) {
    reported.push(`${count(times, 'request')} would not be served: ${code}.`)
  }
  const parts = [heading(`Under ${policies}`, io) + sentences([reported.join(' ')], io)]
  if (policy.rules.length > 0) parts.push(table(RULES, policy.rules.map(ruleRow), io.columns))
  const projects = policy.projects.filter(one => one.refused > 0).slice(0, SHOWN)
  if (projects.length > 0) {
    const rows = projects.map(one => [one.project, grouped(one.requests), grouped(one.refused)])
    parts.push(table(columns(['project'], ['requests', 'refused']), rows, io.columns))
    const hours = [...policy.hours].sort((a, b) => b.refused - a.refused).filter(hour => hour.refused > 0)
    const hourRows = hours
      .slice(0, SHOWN)
      .map(one => [minuteOf(one.hour), grouped(one.requests), grouped(one.refused)])
    parts.push(table(columns(['hour (UTC)'], ['requests', 'refused']), hourRows, io.columns))
  }
  if (policy.firstOffenders.length > 0) {
    parts.push(`First refused:\n${offenders(policy.firstOffenders, io)}`)
  }
  return parts.join('\n')
}

const RULES = columns(['rule', 'mode'], ['requests', 'refused', 'projects'])

function ruleRow({ rule, mode, requests, refused, projects }: PolicyDocument['rules'][number]): string[] {
  const hit = mode === 'enforce' ? grouped(refused) : `(${grouped(refused)})`
  return [rule, mode, grouped(requests), hit, grouped(projects)]
}

function offenders(list: readonly Offender[], io: Io): string {
  return sentences(
    list.map(
      ({ at, project, method, path, rules }) => `  ${at} ${project} ${method} ${path} (${rules.join(', ')})`,
    ),
    io,
  )
}

function differenceText(
  { bothAdmit, bothRefuse, newlyRefused, newlyAdmitted }: ReplayDifference,
  io: Io,
): string {
  const parts = [
    heading('Difference', io),
    sentences(
      [
        `${count(newlyRefused.requests, 'request')} newly refused, ${grouped(newlyAdmitted.requests)} newly admitted; ` +
          `both admit ${grouped(bothAdmit)} and refuse ${grouped(bothRefuse)}.`,
      ],
      io,
    ),
  ]
  for (const [title, change] of [
    ['newly refused', newlyRefused],
    ['newly admitted', newlyAdmitted],
  ] as const) {
    if (change.requests === 0) continue
    const rows = (of: Readonly<Record<string, number>>) =>
      Object.entries(of)
        .slice(0, SHOWN)
        .map(([name, times]) => [name, grouped(times)])
    parts.push(
      `\n${table(columns(['rule'], [title]), rows(change.rules), io.columns)}`,
      `\n${table(columns(['project'], [title]), rows(change.projects), io.columns)}`,
      `\nFirst ${title}:\n${offenders(change.first, io)}`,
    )
  }
  return parts.join('')
}

function recordedText(
  { requests, bothAdmit, bothRefuse, onlyThen, onlyNow }: RecordedDocument,
  io: Io,
): string {
  return (
    heading('Compared with the log', io) +
    sentences(
      [
        `${percent(share(bothAdmit + bothRefuse, requests))} of ${count(requests, 'request')} have the same answer as then. ` +
          `Refused then and now: ${grouped(bothRefuse)}, only then: ${grouped(onlyThen)}, only now: ${grouped(onlyNow)}.`,
      ],
      io,
    )
  )
}

function accuracyText(accuracy: readonly string[], io: Io): string {
  const reported = accuracy.length > 0 ? accuracy : ['The log has everything that the rules ask for.']
  return heading('Accuracy', io) + sentences(reported, io)
}

function share(part: number, of: number): number {
  return of === 0 ? 0 : part / of
}
