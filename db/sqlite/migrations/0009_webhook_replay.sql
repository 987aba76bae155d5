-- Replay of a range: while `replay_until` is set, `position` walks up to it, then jumps to `resume_position`.

ALTER TABLE webhook_endpoint ADD COLUMN replay_until INTEGER;
ALTER TABLE webhook_endpoint ADD COLUMN resume_position INTEGER;
