-- What a decision rests on: the spaces of a task and its agent where their revision is another than the caller's, the
-- outcomes that are pending, and the newest records of their ledgers. ARGV: the revisions the caller has, -1 for none; the
-- records by which it knows task and agent, and the number of the key of the latter's ledger, as in apply.lua. KEYS: the
-- agent, its ledger and its pending outcomes; the task and its ledger where there is one; others.
local A, K, call, sub, num = ARGV, KEYS, redis.call, string.sub, tonumber
local t = call('TIME')
local out = { t[1] .. sub('000000', #t[2] + 1) .. t[2] }
local function space(key, have)
  local head = call('HGET', key, 'm')
  local rev = head and string.format('%.0f', num(sub(head, 1, 16))) or '0'
  out[#out + 1] = rev
  out[#out + 1] = rev ~= have and call('HGETALL', key) or false
  return head
end
local function last(key, length) -- and its place
  local e = call('LINDEX', key, -1)
  return e and sub(e, 1, 16) .. 'T' .. string.format('%.0f', length or call('LLEN', key)) or ''
end
local inTask = A[6] == '1'
local newT = ''
if inTask then
  if not space(K[4], A[1]) and call('EXISTS', K[5]) == 1 then
    out[2] = '4503599627370496' -- it was over and has gone
  end
  newT = last(K[5])
else
  out[2] = '0' out[3] = false
end
local headA = space(K[1], A[2])
out[#out + 1] = call('LRANGE', K[3], 0, -1)
out[#out + 1] = headA and num(sub(headA, 49)) or 0
local length = headA and num(sub(headA, 17, 32)) or 0
local other = 0
if A[3] ~= '' then
  local e = call('LINDEX', K[5], num(sub(A[3], 18)) - 1)
  if not e or sub(e, 1, 16) ~= sub(A[3], 1, 16) then other = 1 end
end
local by = A[4]
if by ~= '' then
  local e, place = nil, num(sub(by, 18))
  if sub(by, 17, 17) == 'A' then
    local left = place - length - 1
    e = left >= 0 and '' or call('LINDEX', K[num(A[5])], left) or by
  else e = call('LINDEX', K[num(A[5])], place - 1) end
  if not e or sub(e, 1, 16) ~= sub(by, 1, 16) then other = other + 2 end
end
out[#out + 1] = other
out[#out + 1] = newT
out[#out + 1] = last(K[2], length)
return out
