-- Answers, as MessagePack: what is nothing stays nothing in them, which neither Redis' own arrays nor JSON can do,
-- and instants keep all their digits.

-- The heads of arrays that were made before: as many as there are kinds of rows, and numbers of them.
local heads = {}

local function array(count)
  if not heads[count] then
    heads[count] = string.char(0xdd, math.floor(count / 16777216) % 256, math.floor(count / 65536) % 256,
                               math.floor(count / 256) % 256, count % 256)
  end
  return heads[count]
end

-- Pack one row of `count` values; any of them may be nil.
local function pack_row(values, count)
  return array(count) .. cmsgpack.pack(unpack(values, 1, count))
end

-- Facts by name, and rows that are packed already.
local function reply(facts, rows)
  facts.now = now
  rows = rows or {}
  return '\146' .. cmsgpack.pack(facts) .. array(#rows) .. table.concat(rows)
end

-- The hints to publish, each once, with its sender.
local said

-- Publish a hint to all, also to the caller, which cannot know it.
local function hint(kind, name)
  said[kind .. ' ' .. (name or '')] = '*'
end

-- Where the user may not publish, what is written stays written: hints may be lost.
local function publish()
  for text, sender in pairs(said) do redis.pcall('PUBLISH', key('hints'), sender .. ' ' .. text) end
end

local READS = {'no-writes'}
local WRITES = {}
-- What ends or removes things must be possible when memory is full; otherwise it would stay full.
local FREES = {'allow-oom'}

-- What verbs write with; told here, since all of them end with its flush.
local rows = {}

-- Register a verb: called with the namespace's tag, the time or nothing, the sender, a request, and hints to pass on, if
-- the time has come for them. A verb that returns nothing answers with nothing but the time.
local function verb(name, flags, run)
  redis.register_function{
    function_name = LIBRARY .. '_' .. name,
    flags = flags,
    callback = function(keys, args)
      ns, said = keys[1], {}
      now = tonumber(args[1]) or clock()
      moment = string.format('%d', now)
      local done, answer = pcall(run, cmsgpack.unpack(args[3]))
      -- Also behind an error, or the indexes would not be true to what was written before it.
      rows.flush()
      if not done then error(answer) end
      if tonumber(args[4]) <= now then
        for place = 5, #args do said[args[place]] = args[2] end
      end
      publish()
      return answer or reply({})
    end,
  }
end
