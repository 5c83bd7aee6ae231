-- Credentials: in one hash, by id, and by digest in another. There are few.

local access = {}

-- Lua takes no more than 200 names in one place: what only this file uses stays in it.
do
  local CREDENTIAL = {
    'id', 'kind', 'name', 'role', 'queues', 'parent', 'created_at', 'expires_at', 'used_at', 'revoked_at',
  }

  local function read(id)
    local packed = id and redis.call('HGET', key('credentials'), id)
    return packed and cmsgpack.unpack(packed)
  end

  local function save(one)
    redis.call('HSET', key('credentials'), one.id, cmsgpack.pack(one))
  end

  local function all()
    return collect(redis.call('HKEYS', key('credentials')), read)
  end

  local function is_good(one)
    return one and not one.revoked_at and not (one.expires_at and one.expires_at <= now)
  end

  verb('add_credential', WRITES, function(asked)
    local new = asked.new
    if read(new.id) then return end
    new.created_at, new.expires_at, new.lifetime = now, new.lifetime and now + new.lifetime, nil
    save(new)
    redis.call('HSET', key('digests'), new.digest, new.id)
    audit.add({asked.entry})
  end)

  verb('find_credential', READS, function(asked)
    local one = read(redis.call('HGET', key('digests'), asked.digest))
    return reply({}, {is_good(one) and rows.packed(one, CREDENTIAL) or nil})
  end)

  verb('credentials', READS, function(asked)
    return reply({}, collect(all(), function(one) return one.kind == asked.kind and rows.packed(one, CREDENTIAL) end))
  end)

  verb('touch_credential', WRITES, function(asked)
    local one = read(asked.id)
    if not is_good(one) then return reply({good = false}) end
    one.used_at, one.expires_at = now, asked.lifetime and now + asked.lifetime or one.expires_at
    save(one)
    return reply({good = true})
  end)

  local function revoke(one)
    one.revoked_at = now
    save(one)
  end

  verb('revoke_credentials', FREES, function(asked)
    local wanted, revoked = set_of(asked.ids), {}
    for _, one in ipairs(all()) do
      if not one.revoked_at and wanted[one.id] then
        revoke(one)
        audit.add_of(asked, one.id)
        revoked[#revoked + 1] = one.id
      elseif not one.revoked_at and one.parent and wanted[one.parent] then
        revoke(one)
      end
    end
    return reply({revoked = revoked})
  end)

  -- Forget what has not been accepted for long.
  function access.prune(before)
    for _, one in ipairs(all()) do
      if (one.revoked_at or before) < before or (one.expires_at or before) < before then
        redis.call('HDEL', key('credentials'), one.id)
        redis.call('HDEL', key('digests'), one.digest)
      end
    end
  end
end
