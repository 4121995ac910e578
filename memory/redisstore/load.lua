-- What a decision rests on: the spaces of a task and its agent where their revision is another than the caller's, and the
-- outcomes that are pending. ARGV: the revisions the caller has, -1 for none. KEYS: the agent,
-- its pending outcomes; the task and its ledger where there is one.
local t = redis.call('TIME')
local out = { t[1] .. string.sub('000000', #t[2] + 1) .. t[2] }
local function space(key, have)
  local rev = redis.call('HGET', key, 'r') or '0'
  out[#out + 1] = rev
  out[#out + 1] = rev ~= have and redis.call('HGETALL', key) or false
end
if #KEYS == 4 then
  space(KEYS[3], ARGV[1])
  if out[2] == '0' and redis.call('EXISTS', KEYS[3]) == 0 and redis.call('EXISTS', KEYS[4]) == 1 then
    out[2] = '4503599627370496' -- it was over and has gone
  end
else
  out[2] = '0' out[3] = false
end
space(KEYS[1], ARGV[2])
out[#out + 1] = redis.call('LRANGE', KEYS[2], 0, -1)
return out
