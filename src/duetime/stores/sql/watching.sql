-- What is read and written while someone watches.

-- fragment: outline
id, task, queue, state, schedule, due_at, created_at, started_at, finished_at, worker

-- name: glance
-- Read jobs by id, and the newest, without what may be long.
SELECT {outline} FROM {jobs} WHERE id IN (SELECT r.id FROM {each rows: id text} AS r)
UNION ALL
SELECT {outline} FROM (SELECT {outline} FROM {jobs} ORDER BY id DESC LIMIT :newest) AS newest

-- name: watched
-- Read what workers have noted: those that live, and those of the batch. Tell which are to be told that they are watched.
SELECT w.id, w.name, CASE WHEN w.state = 'alive' AND w.lease_until < {now} THEN 'dead' ELSE w.state END,
       w.paused_at, w.journal, w.state = 'alive' AND coalesce(w.watched_until, 0) < {now} + :lease / 2
FROM {workers} AS w
WHERE w.state = 'alive' OR w.id IN (SELECT r.id FROM {each rows: id text} AS r)

-- name: watch
UPDATE {workers} SET watched_until = {now} + :lease
FROM {each rows: id text} AS r
WHERE {workers}.id = r.id AND {workers}.state = 'alive'

-- name: write_journal
UPDATE {workers} SET journal = :journal
WHERE id = :worker
