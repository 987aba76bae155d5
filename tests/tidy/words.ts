/** The words of our former dialect: none of them is left in a text that people read (the README has the glossary). */
import type { Finding, Source } from './source.ts'
import { userStrings } from './user-strings.ts'

/** What to avoid, and what to say instead. Words that are also good English in some sense are left to readers. */
const avoided: [pattern: RegExp, instead: string][] = [
  [/\b(is|are|was|were|be|been) told\b|\btells? (of|whether|which|who|you)\b/i, 'says, shows, reports'],
  [/\bhears? of\b|\bhears from\b/i, 'receives'],
  [/\bspeaks? of\b|\brules? that speaks?\b/i, 'alerts on, alert rule'],
  [/\btaken apart\b|\btakes apart\b/i, 'parses, splits'],
  [/\bso many\b/i, 'a number with its unit'],
  [/\b(is|are) like that\b/i, 'matches'],
  [/\b(is|are) called so\b/i, 'matches, has this name'],
  [/\bgoes on\b|\bgo on\b|\bwent on\b/i, 'continues'],
  [/\bwent by\b/i, 'passed'],
  [/\bwhoever\b|\bwho asks\b/i, 'the person, the caller'],
  [/\bthat (is|are) none\b|\b(is|are) none\b/i, 'is not a …, no …'],
  [/\bof now\b|\bas it was started\b/i, 'current, default'],
  [/\bof them all\b|\bof all of them\b/i, 'total'],
  [/\bare at work\b|\bis at work\b/i, 'is running'],
  [/\berrand\b/i, 'authorization request'],
  [/\bclockwork\b/i, 'scheduler'],
  [/\btakes? (it|them) away\b|\btaken away\b|\btake away\b/i, 'deletes, erases, expires'],
  [/\bmembers? of (a|an|the) (json|body|event|object|request)\b/i, 'field'],
  [/\bkept view/i, 'saved view'],
  [/\bat hand\b/i, 'available'],
  [/\bof those there\b|\bwhat is there\b/i, 'a noun'],
  [/\bplease\b|\bsorry\b/i, 'nothing: say what happened and what to do'],
]

export function words(source: Source): Finding[] {
  return userStrings(source).flatMap(({ path, line, text }) =>
    avoided
      .filter(([pattern]) => pattern.test(text))
      .map(([pattern, instead]) => {
        const word = pattern.exec(text)?.[0] ?? ''
        return { rule: 'words', path, line, message: `“${word}” in “${text}”: ${instead}` }
      }),
  )
}
