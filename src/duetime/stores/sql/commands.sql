-- What workers are told.

-- fragment: command_columns
id, worker, kind, body, created_at, taken_at, done_at, outcome, dropped

-- name: send
-- Tell workers that are alive; each is locked, so that it cannot go without this being dropped.
INSERT INTO {commands} (id, worker, kind, body, created_at)
SELECT r.id, w.id, r.kind, r.body, {now}
FROM {each rows: id text, worker text, kind text, body text} AS r
{in_order} {workers} AS w {by_key} ON w.id = r.worker
WHERE w.state = 'alive' AND w.lease_until >= {now}
{locking}
ON CONFLICT (id) DO NOTHING

-- name: take_commands
-- Hand a worker what it has been told and has not answered; again, if an answer was lost.
UPDATE {commands} {index open of commands} SET taken_at = coalesce(taken_at, {now})
WHERE worker = :worker AND done_at IS NULL
RETURNING {command_columns}

-- name: finish_command
UPDATE {commands} SET done_at = {now}, outcome = :outcome
WHERE id = :id AND done_at IS NULL

-- name: drop_commands
UPDATE {commands} {index open of commands} SET done_at = {now}, outcome = :reason, dropped = 1
FROM {each rows: id text} AS r
WHERE {commands}.worker = r.id AND {commands}.done_at IS NULL

-- name: commands
SELECT {command_columns} FROM {commands} WHERE id IN (SELECT r.id FROM {each rows: id text} AS r) ORDER BY id

-- name: commands_of
SELECT {command_columns} FROM {commands} WHERE worker = :worker ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: prune_commands
DELETE FROM {commands} WHERE id IN (SELECT r.id FROM (SELECT c.id FROM {commands} AS c WHERE c.done_at < :before) AS r)
