-- Claims, as MariaDB runs them.

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
