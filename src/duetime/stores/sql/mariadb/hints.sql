-- Hints from one process to another.

-- fragment: last_due
-- When the latest fell due of the jobs that are first in their queue and priority, and of those at gates: a probe of an
-- index for each.
greatest(
    coalesce((SELECT max(f.due_at) FROM (
        SELECT min(j.due_at) AS due_at FROM {jobs} AS j {index claim} WHERE {claimable}
        GROUP BY j.state, j.waits, j.gate, j.queue, j.priority
    ) AS f WHERE f.due_at <= {now}), 0),
    coalesce((SELECT max(j.due_at) FROM {jobs} AS j {index gated_due} WHERE j.gated = 1 AND j.due_at <= {now}), 0)
)

-- name: tell
-- Say something, over what was said before in the same place.
INSERT INTO {hints} (slot, told, said) VALUES (:slot, 1, :said) ON DUPLICATE KEY UPDATE told = told + 1, said = :said

-- name: watch
-- Wait until a process says something, or a job falls due that no one was told of, since a caller's commit cannot tell.
-- One looks, every `pace` seconds; the others wait for it to let go of the lock, and then see for themselves. Each looks
-- before: one that comes late must not wait behind one that has heard it already. What a SET would read, it would lock.
BEGIN NOT ATOMIC
    DECLARE turn varchar(64) DEFAULT concat('duetime-', md5(concat(database(), '.{hints}')));
    DECLARE heard, due bigint;
    DECLARE known bigint DEFAULT :due;
    DECLARE looks bigint DEFAULT 0;
    SELECT coalesce(sum(h.told), 0), {last_due} INTO heard, due FROM {hints} AS h;
    IF heard = :heard AND due <= known AND get_lock(turn, 5) THEN
        REPEAT
            DO sleep(if(looks, :pace, 0));
            SELECT coalesce(sum(h.told), 0) INTO heard FROM {hints} AS h;
            IF mod(looks, 3) = 0 THEN
                SET known = due;
                SELECT {last_due} INTO due;
            END IF;
            SET looks = looks + 1;
        UNTIL heard <> :heard OR due > known OR looks * :pace > 5 END REPEAT;
        DO release_lock(turn);
    END IF;
    SELECT due, due > known, heard <> :heard, h.slot, h.told, h.said
    FROM (SELECT 1) AS one LEFT JOIN {hints} AS h ON heard <> :heard;
END
