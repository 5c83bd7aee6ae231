-- Locks that people take, as MariaDB keeps them.

-- name: make_locks
CREATE TABLE IF NOT EXISTS {locks} (
    name varchar(200) NOT NULL PRIMARY KEY,
    token varchar(200) NOT NULL,
    holder text NOT NULL,
    fence bigint NOT NULL,
    since bigint NOT NULL,
    deadline bigint NOT NULL
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin

-- name: take_lock
-- The last id that the statement made is the fence, or 0 where another one owns the lock. The token comes first: the rest
-- goes by whether it is the new one.
INSERT INTO {locks} (name, token, holder, fence, since, deadline)
VALUES (:name, :token, :holder, last_insert_id({now}), {now}, {now} + :ttl)
ON DUPLICATE KEY UPDATE
    token = IF(deadline <= {now} OR token = :instead_of, VALUES(token), token),
    holder = IF(token = VALUES(token), VALUES(holder), holder),
    since = IF(token = VALUES(token), VALUES(since), since),
    fence = IF(token = VALUES(token), last_insert_id(greatest(fence + 1, VALUES(fence))), fence + last_insert_id(0)),
    deadline = IF(token = VALUES(token), VALUES(deadline), deadline)

-- name: renew_lock
UPDATE {locks} SET deadline = {now} + :ttl
WHERE name = :name AND token = :token AND deadline > {now}

-- name: release_lock
UPDATE {locks} SET deadline = 0
WHERE name = :name AND token = :token AND deadline > {now}

-- name: forget_locks
DELETE FROM {locks} WHERE deadline <= {now} AND fence < {now}

-- name: has_locks
SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND table_name = '{locks}'
