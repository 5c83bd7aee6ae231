-- Credentials: who may do what over a network.

-- fragment: good
-- True for one that is accepted now.
{credentials}.revoked_at IS NULL AND ({credentials}.expires_at IS NULL OR {credentials}.expires_at > {now})

-- fragment: credential
id, kind, name, role, queues, parent, created_at, expires_at, used_at, revoked_at

-- name: add_credential
INSERT INTO {credentials} (id, kind, digest, name, role, queues, parent, created_at, expires_at)
VALUES (:id, :kind, :digest, :name, :role, :queues, :parent, {now}, {now} + CAST(:lifetime AS bigint))
ON CONFLICT (id) DO NOTHING

-- name: find_credential
SELECT {credential} FROM {credentials} WHERE digest = :digest AND {good}

-- name: credentials
SELECT {credential} FROM {credentials} WHERE kind = :kind ORDER BY created_at DESC, id DESC

-- name: touch_credential
UPDATE {credentials} SET used_at = {now}, expires_at = coalesce({now} + CAST(:lifetime AS bigint), expires_at)
WHERE id = :id AND {good}
RETURNING id

-- name: revoke_credentials
UPDATE {credentials} SET revoked_at = {now}
FROM {each rows: id text} AS r
WHERE {credentials}.id = r.id AND {credentials}.revoked_at IS NULL
RETURNING {credentials}.id

-- name: revoke_children
UPDATE {credentials} SET revoked_at = {now}
FROM {each rows: id text} AS r
WHERE {credentials}.parent = r.id AND {credentials}.revoked_at IS NULL

-- name: prune_credentials
DELETE FROM {credentials} WHERE revoked_at < :before OR expires_at < :before
