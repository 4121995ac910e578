-- What a decision rests on: the spaces of a task and its agent where their revision is another than the caller's, and the
-- outcomes that are pending. ARGV: the revisions the caller has, -1 for none. KEYS: the task where there is one, the agent,
-- its pending outcomes.
local t = redis.call('TIME')
local out = { t[1] .. string.sub('000000', #t[2] + 1) .. t[2] }
local function space(key, have)
  local rev = redis.call('HGET', key, 'r') or '0'
  out[#out + 1] = rev
  out[#out + 1] = rev ~= have and redis.call('HGETALL', key) or false
end
local k = #KEYS
if k == 3 then space(KEYS[1], ARGV[1]) else out[2] = '0' out[3] = false end
space(KEYS[k - 1], ARGV[2])
out[#out + 1] = redis.call('LRANGE', KEYS[k], 0, -1)
return out
