-- Locks that people take, as MariaDB keeps them.

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
