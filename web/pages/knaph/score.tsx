/** The quality score of a site's memory: its source, its parts, and how to raise it. */
import { pointsOf } from '../../charts/headlines.tsx'
import { ChangeMark } from '../../charts/headlines.tsx'
import type { Memory, MemoryVersion } from '../../api/registry-api.ts'
import { scoreParts, scoreWith } from './snapshot.ts'

const oneDigit = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 1 })

export function scoreText(score: number): string {
  return oneDigit.format(score)
}

export function ScoreBar({ score }: { score: number }) {
  return (
    <span class="score-bar" aria-hidden="true">
      <i style={{ width: `${Math.max(0, Math.min(100, score))}%` }} />
    </span>
  )
}

export function Score({ memory, before }: { memory: Memory; before: MemoryVersion | null }) {
  const parts = scoreParts(memory.snapshot)
  const filled = parts.filter((part) => part.filled).length
  const missing = parts.filter((part) => !part.filled)
  const ours = scoreWith(filled)
  return (
    <section class="panel lead score" aria-label="Score">
      <div class="score-number">
        <strong>{scoreText(memory.score)}</strong> <span class="muted">of 100</span>
        <ScoreBar score={memory.score} />
        <small>
          {before !== null && (
            <>
              <ChangeMark change={pointsOf(memory.score / 100, before.score / 100)} /> from{' '}
              {scoreText(before.score)} in version {before.version}.{' '}
            </>
          )}
          {memory.scoreComputed
            ? `Computed: ${filled} of ${parts.length} parts are filled.`
            : `Sent with the snapshot. The computed score would be ${ours}.`}
        </small>
      </div>
      <ul class="score-parts">
        {parts.map((part) => (
          <li key={part.name} class={part.filled ? 'filled' : 'missing'}>
            <span aria-hidden="true">{part.filled ? '✓' : '–'}</span>
            <span>
              <code>{part.name}</code> <span class="muted">{part.says}</span>
              <span class="visually-hidden">{part.filled ? ', filled' : ', missing'}</span>
            </span>
          </li>
        ))}
      </ul>
      <p>
        {missing.length === 0 ? (
          'All parts are filled.'
        ) : (
          <>
            <b>To raise the score:</b> add <code>{missing[0]?.name}</code>
            {memory.scoreComputed && ` (raises it to ${scoreWith(filled + 1)})`}.
            {missing.length > 1 && ` ${missing.length} parts are missing.`}
          </>
        )}
      </p>
    </section>
  )
}
