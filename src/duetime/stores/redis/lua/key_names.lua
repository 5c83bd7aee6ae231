-- How keys are named and read. docs/reference/redis.md tells what is under each; the lists of jobs are in indexes.lua, the
-- fields of a job in rows.lua.

-- Set for each call: functions run one at a time. `moment` is the time as text, which saves Redis the conversion.
local ns, now, moment

local function key(name, part)
  return part == nil and ns .. ':' .. name or ns .. ':' .. name .. ':' .. part
end

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- `|` is in no name that users give; `}` comes right behind it.
local function joined(...)
  return table.concat({...}, '|')
end

-- Return all names of a set by score.
local function members(name, part)
  return redis.call('ZRANGE', key(name, part), 0, -1)
end

local function leave(id, ...)
  for _, name in ipairs({...}) do redis.call('ZREM', key(name), id) end
end

-- Return the names up to a score, lowest first.
local function up_to(name, score, most, ...)
  return redis.call('ZRANGE', name, '-inf', score, 'BYSCORE', 'LIMIT', 0, most, ...)
end

-- Read a hash; nil if there is none, or if the key holds something else.
local function read_hash(name)
  local fields, values = {}, redis.pcall('HGETALL', name)
  for place = 1, #values, 2 do fields[values[place]] = values[place + 1] end
  return next(fields) and fields
end

-- Write a field of a hash, or remove it where there is nothing to write.
local function set_field(name, field, value)
  if value then redis.call('HSET', name, field, value) else redis.call('HDEL', name, field) end
end

-- Read some fields of a hash: numbers, but for those that are texts.
local function read_fields(name, columns, texts)
  local fields, values = {}, redis.call('HMGET', name, unpack(columns))
  for place, column in ipairs(columns) do
    local value = values[place] or nil
    fields[column] = texts[column] and value or tonumber(value)
  end
  return fields
end

local function within(registry, prefix)
  return redis.call('ZRANGE', key(registry), '[' .. prefix .. '|', '(' .. prefix .. '}', 'BYLEX')
end

-- Behind a score, in the words of a range; what is only joined to a text would lose digits.
local function past(score)
  return string.format('(%d', score)
end

-- Return the lowest score in a set, or the lowest within a bound.
local function first_score(name, from)
  local first = redis.call('ZRANGE', name, from or '-inf', '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
  return tonumber(first[2])
end

local function set_of(list)
  local set = {}
  for _, each in ipairs(list or {}) do set[each] = true end
  return set
end

-- Return what a function makes of each value of a list, without what it makes nothing of.
local function collect(list, make, ...)
  local made = {}
  for _, each in ipairs(list) do made[#made + 1] = make(each, ...) or nil end
  return made
end

-- Redis hands no more than some thousands of values to one command.
local CHUNK = 5000

local function in_chunks(command, name, values)
  for first = 1, #values, CHUNK do
    redis.call(command, name, unpack(values, first, math.min(first + CHUNK - 1, #values)))
  end
end
