-- What a decision rests on: the spaces of a task and its agent where their revision is another than the caller's, and the
-- outcomes that are pending. ARGV: the revisions the caller has, -1 for none. KEYS: the agent; the task and its ledger where
-- there is one.
local t = redis.call('TIME')
local out = { t[1] .. string.sub('000000', #t[2] + 1) .. t[2] }
local function space(key, have)
  local head = redis.call('HGET', key, 'm')
  local rev = head and string.format('%.0f', tonumber(string.sub(head, 1, 16))) or '0'
  out[#out + 1] = rev
  out[#out + 1] = rev ~= have and redis.call('HGETALL', key) or false
  return head
end
if #KEYS == 3 then
  if not space(KEYS[2], ARGV[1]) and redis.call('EXISTS', KEYS[3]) == 1 then
    out[2] = '4503599627370496' -- it was over and has gone
  end
else
  out[2] = '0' out[3] = false
end
space(KEYS[1], ARGV[2])
out[#out + 1] = redis.call('HGET', KEYS[1], 'p') or ''
return out
