-- Writes fields of one hash, each only if it is newer than what stands there.
--
-- KEYS  1  key of the partition whose log the values come from
--       2  the hash to write
-- ARGV  1  the rebuild that the writer belongs to; empty for values that stand for themselves
--       2… field, value, field, value, …
--
-- The whole numbers with which a value begins are its stamp, compared in order: {"offset":12,… is older than
-- {"offset":13,…. They are compared as digits, since Lua's numbers are exact to 2^53 only.
--
-- Gives the number of fields written, or -1 if the partition is not, or no longer, that of the writer's rebuild: Redis
-- was emptied or restarted, and what the writer knows to be there is gone.

if ARGV[1] ~= '' and redis.pcall('HGET', KEYS[1], 'rebuild') ~= ARGV[1] then
  return -1
end

-- Somebody else has written something else here. Of a partition it is gone with all that it had: without its position, the next session clears it
-- and writes it again.
local kind = redis.call('TYPE', KEYS[2])['ok']
if kind ~= 'hash' and kind ~= 'none' then
  redis.call('DEL', KEYS[2])
  if ARGV[1] ~= '' then
    redis.call('HDEL', KEYS[1], 'position')
    return -1
  end
end

local function stamp(value)
  local numbers, at = {}, 2
  while true do
    local _, last, digits = string.find(value, '^"[%w_]+":(%d+),?', at)
    if not last then
      return numbers
    end
    numbers[#numbers + 1] = digits
    at = last + 1
  end
end

local function is_newer(value, than)
  local new, old = stamp(value), stamp(than)
  for i = 1, math.min(#new, #old) do
    if #new[i] ~= #old[i] then
      return #new[i] > #old[i]
    end
    if new[i] ~= old[i] then
      return new[i] > old[i]
    end
  end
  return false
end

local written = 0
for i = 2, #ARGV, 2 do
  local there = redis.call('HGET', KEYS[2], ARGV[i])
  if not there or is_newer(ARGV[i + 1], there) then
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
    written = written + 1
  end
end
return written
