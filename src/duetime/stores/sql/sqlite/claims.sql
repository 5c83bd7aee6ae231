-- Claims, as SQLite runs them.

-- name: claim
-- Choose jobs of one queue, for `take`. Priorities are walked from the outside in, each an ordered range of the
-- index, and the walk stops at the limit; CROSS JOIN and the named index insist on that. All rows come packed
-- in one: Python's lock is taken and left once for every row that SQLite returns. Each is packed where it is found,
-- because a row that leaves the inner query has all its columns copied, and without what few jobs ask for.
WITH {priorities}
SELECT '[' || coalesce(group_concat(claim, ','), '') || ']', json_group_array(place)
FROM (
    SELECT j.rowid AS place, CASE
        WHEN coalesce({rarely_handed_out}) IS NULL THEN json_array({handed_out})
        ELSE json_array({handed_out}, {rarely_handed_out})
    END AS claim
    FROM {each queues: name text, most int} AS q
    CROSS JOIN priorities AS p
    CROSS JOIN {jobs} AS j {index claim}
    WHERE p.n < :below_priority
      AND {claimable} AND j.queue = q.name AND j.priority = p.n AND j.due_at <= {now} + :ahead
      AND j.due_at > CASE WHEN :ahead = 0 THEN -1 ELSE {now} END
      AND {holdable} AND {known_task} AND {worker_lives} AND {unrestricted}
    LIMIT :limit
)

-- name: take
-- Mark as claimed what `claim` has chosen in the same transaction.
UPDATE {jobs} SET
    state = 'running', fence = fence + 1, claim_id = :claim_id, worker = :worker,
    started_at = CASE WHEN :unstarted = 0 THEN {now} END
WHERE rowid IN (SELECT value FROM json_each(:chosen))
