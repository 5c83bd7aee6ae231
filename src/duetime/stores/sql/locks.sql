-- Locks that people take. They have a table of their own, which is there as soon as one was asked for.

-- name: make_locks
CREATE TABLE IF NOT EXISTS {locks} (
    name {key_text} NOT NULL PRIMARY KEY,
    token text NOT NULL,
    holder text NOT NULL,
    fence bigint NOT NULL,
    since bigint NOT NULL,
    deadline bigint NOT NULL
)

-- name: take_lock
-- Take a lock that is free, whose owner has let the deadline pass, or is the one to be followed, and tell the fence. It
-- rises also where rows were removed meanwhile, or the clock went back.
INSERT INTO {locks} (name, token, holder, fence, since, deadline)
VALUES (:name, :token, :holder, {now}, {now}, {now} + :ttl)
ON CONFLICT (name) DO UPDATE SET
    token = excluded.token, holder = excluded.holder, since = excluded.since, deadline = excluded.deadline,
    fence = CASE WHEN excluded.fence > {locks}.fence THEN excluded.fence ELSE {locks}.fence + 1 END
WHERE {locks}.deadline <= {now} OR {locks}.token = :instead_of
RETURNING fence

-- name: renew_lock
UPDATE {locks} SET deadline = {now} + :ttl
WHERE name = :name AND token = :token AND deadline > {now}
RETURNING 1

-- name: release_lock
-- The row stays, for its fence.
UPDATE {locks} SET deadline = 0
WHERE name = :name AND token = :token AND deadline > {now}
RETURNING 1

-- name: locks
SELECT name, token, holder, fence, since, deadline, deadline - {now} FROM {locks}
WHERE deadline > {now} AND name = coalesce(:name, name) ORDER BY name

-- name: forget_locks
-- A fence that is ahead of the clock stays, since the next one would be lower.
DELETE FROM {locks} WHERE deadline <= {now} AND fence < {now}
RETURNING name
