-- Statements whose shape differs on MariaDB.

-- fragment: priorities
-- MySQL has other rows of constants than MariaDB.
priorities (n) AS (SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5
                   UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)

-- fragment: at_gate
-- What the indexes of gates hold.
j.gated = 1

-- fragment: known_task
-- Hidden from the planner, which would read all jobs that match, and sort them.
CASE WHEN j.task IN (SELECT t.name FROM {each tasks: name text} AS t) THEN true END

-- fragment: has_key
-- What the index of keys holds. Once a job is stored, nothing else is looked at: to lock its key would lock the gap before it, too.
j.held_key = r.unique_key AND NOT EXISTS (SELECT 1 FROM {jobs} AS own WHERE own.id = r.id)

-- fragment: first_near
-- A derived table cannot see the queue and priority that it should look into; so the hundredth job ends the walk.
(SELECT j.due_at {near} AND ({known_task} OR j.id = (SELECT j.id {near} ORDER BY j.due_at, j.id LIMIT 1 OFFSET 99))
 ORDER BY j.due_at, j.id LIMIT 1)

-- name: tally_waiting
-- Count what waits in each queue, due and not, by the index alone: no range in a subquery would end at a bound.
SELECT j.queue, j.priority, least(count(CASE WHEN j.due_at <= {now} THEN 1 END), :most),
       least(count(CASE WHEN j.due_at > {now} THEN 1 END), :most)
FROM {jobs} AS j {index claim} WHERE {claimable} GROUP BY j.queue, j.priority

-- fragment: made_count
-- How many there are, up to a bound; no derived table can see whose they are.
CASE WHEN (SELECT 1 {made_by} ORDER BY j.occurrence LIMIT 1 OFFSET :most) IS NULL THEN (SELECT count(*) {made_by}) ELSE :most END

-- fragment: newest_by_hand
-- The newest that ran of those that were triggered by hand: the index has the id behind its columns.
(SELECT j.id {made_by} AND j.occurrence IS NULL AND {ran} ORDER BY j.id DESC LIMIT 1)

-- name: reach_unsuccessful
-- Nothing lists them in the order of their ids: all jobs are looked at.
SELECT min(r.id), count(*) FROM (SELECT id FROM {jobs} WHERE {on_page} ORDER BY id DESC LIMIT :look_at) AS r

-- name: tables
-- Name the tables of ours that there are, and tell which of them has the version.
SELECT table_name, table_name = '{meta}' FROM information_schema.tables
WHERE table_schema = database() AND table_name IN ({our_tables})
