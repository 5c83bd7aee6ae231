-- Figures over time: parts that workers have written, and the rows that these are merged into.

-- name: add_statistics
INSERT INTO {statistics} ({names whole_statistics})
SELECT r.* FROM {each rows: whole_statistics} AS r WHERE true ON CONFLICT DO NOTHING

-- name: statistics_parts
SELECT id, body FROM {statistics} WHERE grain = 'p' ORDER BY start LIMIT :limit

-- name: statistics_between
SELECT id, body FROM {statistics} WHERE id >= :first AND id < :past

-- name: statistics_rows
SELECT s.id, s.body FROM {each rows: id text} AS r CROSS JOIN {statistics} AS s WHERE s.id = r.id

-- name: folds
-- How often parts were merged.
SELECT start FROM {statistics} WHERE id = ''

-- name: begin_folds
INSERT INTO {statistics} (id, kind, grain, name, start, body) VALUES ('', 'folds', '', '', 0, '') ON CONFLICT DO NOTHING

-- name: lock_folds
-- Who finds it locked leaves the work to the other: no one waits.
SELECT f.id FROM {statistics} AS f WHERE f.id = '' AND f.start = :folds {skip_locked f}

-- name: note_fold
UPDATE {statistics} SET start = start + 1 WHERE id = ''

-- name: empty_parts
UPDATE {statistics} SET grain = 'o', body = ''
FROM {each rows: id text} AS r
WHERE {statistics}.id = r.id

-- name: put_statistics
INSERT INTO {statistics} ({names whole_statistics})
SELECT r.* FROM {each rows: whole_statistics} AS r WHERE true
ON CONFLICT (id) DO UPDATE SET body = excluded.body

-- name: prune_statistics
DELETE FROM {statistics} WHERE grain = :grain AND start < :before
