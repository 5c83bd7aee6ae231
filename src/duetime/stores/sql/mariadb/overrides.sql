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

-- name: claim
-- Choose jobs of one queue, for `take`, and hand them over packed in one row.
SELECT coalesce(json_arrayagg(json_array({handed_out}, {rarely_handed_out})), '[]'),
       coalesce(json_arrayagg(json_array(j.id)), '[]')
FROM (
    SELECT * FROM {jobs} AS j {index claim}
    WHERE j.queue = json_value(:queues, '$[0][0]') AND {first_of} AND j.priority < :below_priority
      AND j.due_at > CASE WHEN :ahead = 0 THEN -1 ELSE {now} END
      AND {holdable}
      AND NOT EXISTS (SELECT 1 FROM {queues} AS p WHERE p.name = json_value(:queues, '$[0][0]')
                      AND (p.paused_at IS NOT NULL OR p.most IS NOT NULL OR p.rate_count IS NOT NULL))
    ORDER BY j.priority, j.due_at, j.id LIMIT :limit
    {skip_locked j}
) AS j

-- name: in_queues
-- Choose due jobs without a gate in a limited queue that is locked.
SELECT j.priority, j.due_at, j.id, j.queue, j.gate FROM {jobs} AS j {index claim}
WHERE j.queue = json_value(:rows, '$[0][0]') AND {first_of}
ORDER BY j.priority, j.due_at, j.id LIMIT :most {skip_locked j}

-- fragment: walk
-- All ranges of the index of gates, by their first keys alone; a comparison of rows would not find its place in the index.
walk (task, gate, queue, priority, due_at, schedule, step) AS (
    SELECT n.task, n.gate, n.queue, n.priority, n.due_at, (
               SELECT j.schedule FROM {jobs} AS j {index gated} WHERE {at_gate} AND j.task = n.task AND j.gate = n.gate
                 AND j.queue = n.queue AND j.priority = n.priority ORDER BY j.due_at LIMIT 1
           ), n.step
    FROM (
        SELECT h.*, row_number() OVER (PARTITION BY h.task ORDER BY h.gate, h.queue, h.priority) AS step
        FROM (SELECT j.task, j.gate, j.queue, j.priority, min(j.due_at) AS due_at FROM {jobs} AS j {index gated}
              WHERE {at_gate} GROUP BY j.task, j.gate, j.queue, j.priority) AS h
        JOIN {each tasks: name text, gate text, queue text, priority int} AS t
          ON t.name = h.task AND (h.gate, h.queue, h.priority) > (t.gate, t.queue, t.priority)
    ) AS n
    WHERE n.step <= :steps AND (SELECT count(*) FROM latest) = :latest
)

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

-- name: has_schema
-- Tell whether there are any tables of ours.
SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND table_name = '{meta}'

-- name: make_locks
CREATE TABLE IF NOT EXISTS {locks} (
    name varchar(200) NOT NULL PRIMARY KEY,
    token varchar(64) NOT NULL,
    holder text NOT NULL,
    fence bigint NOT NULL,
    since bigint NOT NULL,
    deadline bigint NOT NULL
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin

-- name: take_lock
-- The last id that the statement made is the fence, or 0 where another one owns the lock. The deadline comes last: what is
-- set before goes by the old one.
INSERT INTO {locks} (name, token, holder, fence, since, deadline)
VALUES (:name, :token, :holder, last_insert_id({now}), {now}, {now} + :ttl)
ON DUPLICATE KEY UPDATE
    token = IF(deadline <= {now}, VALUES(token), token),
    holder = IF(deadline <= {now}, VALUES(holder), holder),
    since = IF(deadline <= {now}, VALUES(since), since),
    fence = IF(deadline <= {now}, last_insert_id(greatest(fence + 1, VALUES(fence))), fence + last_insert_id(0)),
    deadline = IF(deadline <= {now}, VALUES(deadline), deadline)

-- name: renew_lock
UPDATE {locks} SET deadline = {now} + :ttl
WHERE name = :name AND token = :token AND deadline > {now}

-- name: release_lock
UPDATE {locks} SET deadline = 0
WHERE name = :name AND token = :token AND deadline > {now}

-- name: forget_locks
DELETE FROM {locks} WHERE deadline <= {now}

-- name: has_locks
SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND table_name = '{locks}'
