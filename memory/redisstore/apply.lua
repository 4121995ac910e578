-- One transaction of one agent: check the lease, check every condition on what is there, then write, all or nothing.
-- The layout of keys and arguments is in encode.go, that of the values in value.go. Numbers stay below 2^53, where Lua's
-- doubles are exact; those that are compared as text have 16 digits.
local A, K = ARGV, KEYS
local call, sub, fmt, num = redis.call, string.sub, string.format, tonumber

local t = call('TIME')
local now = t[1] .. sub('000000', #t[2] + 1) .. t[2]
local NOW = num(now)
local ZERO = '0000000000000000'
local LAST = 9999999999999999

local phase, fence, owner, ttl, step = A[1], A[2], A[3], num(A[4]), A[5]
local raisesTask, raisesAgent, reads = A[6] == '1', A[7] == '1', A[8] == '1'
local nT, nR, nA = num(A[9]), num(A[10]), num(A[11])
local writesTask, keep = A[12] == '1', num(A[13])
local expires = A[14] == '1'
local at = 15 -- of the first field name

-- cur holds the values of the named fields: of the task's hash, of its records', of the agent's. The first of the task
-- are its revision, the length of its ledger, whether it is over and how many of its intents are kept; the first of the
-- records is the lease; the first of the agent are its revision, the length of its ledger and the number of outcomes ever
-- pended.
local cur = {}
local function fetch(key, n)
  local from = #cur
  for i = 0, n - 1, 1000 do
    local m = math.min(n - i, 1000)
    local r = call('HMGET', key, unpack(A, at + from + i, at + from + i + m - 1))
    for j = 1, m do cur[from + i + j] = r[j] end
  end
end
local oT, oR, oA = 0, nT, nT + nR
if nT > 0 then fetch(K[1], nT) fetch(K[2], nR) end
fetch(K[3], nA)
local n = nT + nR + nA
local taskRev, taskSeq, refused = 0, 0, false
if nT > 0 then
  taskRev, taskSeq = num(cur[1] or 0), num(cur[2] or 0)
  if not cur[1] and not cur[2] and call('EXISTS', K[7]) == 1 then -- it was over and has gone; its ledger is left
    taskRev, taskSeq = 4503599627370496, call('XLEN', K[7])
    if writesTask then refused = true end
  end
end
local had = taskSeq
local agentRev, agentSeq, pended = num(cur[oA + 1] or 0), num(cur[oA + 2] or 0), num(cur[oA + 3] or 0)

local function reply(status, failed, seq, untl)
  local out = { status, failed, now, fmt('%.0f', seq), untl, fmt('%.0f', taskRev), fmt('%.0f', agentRev), call('LRANGE', K[4], 0, -1) }
  if status == 0 or reads then
    for i = 1, n do out[8 + i] = cur[i] end
  end
  return out
end

if refused then return reply(0, -1, 0, '0') end

-- The lease: phase, the phase that left it so, whether it is kept, end, sequence, then fence|step|owner, and behind a NUL
-- the cells that its transactions put: length, name and version of each.
local lease
if nR > 0 then lease = cur[oR + 1] end
local lPhase, lBy, lKept, lUntil, lSeq, lFence, lStep, lOwner, lCells
if lease then
  lPhase, lBy, lKept, lUntil, lSeq = sub(lease, 1, 1), sub(lease, 2, 2), sub(lease, 3, 3), sub(lease, 4, 19), sub(lease, 20, 35)
  lFence, lStep, lOwner, lCells = string.match(sub(lease, 36), '^(%d+)|(%d+)|(%Z*)(.*)$')
end
if phase ~= 'N' then
  if lease and lBy == phase and lFence == fence and lOwner == owner then
    local again = true
    if phase == 'B' then again = lUntil > now
    elseif phase == 'L' then again = step ~= '0' and step == lStep end
    if again then return reply(2, -1, num(lSeq), lUntil) end
  end
  local begun = lPhase == 'B'
  local fresh = fence == '1' and (not lease or lPhase == 'K')
  local expired = begun and lUntil <= now and num(fence) == num(lFence) + 1
  local held = begun and fence == lFence and owner == lOwner
  local may = false
  if phase == 'K' then may = not lease and fence == '1'
  elseif phase == 'B' then may = fresh or expired
  elseif phase == 'L' then may = held and (step == '0' or num(step) == num(lStep) + 1)
  elseif phase == 'X' then may = held
  elseif phase == 'Z' then may = fresh
  elseif phase == 'Y' then may = expired end
  if not may then return reply(0, -1, 0, '0') end
end

-- What a token is asked for: from is its state with its length before it, '' absent or expired; fresh is 0, a greatest
-- age, or negative where its expiry does not count.
local function matches(c, from, fresh)
  if from == '' then
    if not c then return true end
    local e = sub(c, 17, 32)
    return e ~= ZERO and e <= now
  end
  if not c or sub(c, 33, 32 + #from) ~= from then return false end
  if fresh < 0 then return true end
  local e = sub(c, 17, 32)
  if e ~= ZERO and e <= now then return false end
  return fresh == 0 or num(sub(c, 1, 16)) + fresh >= NOW
end

local owned = '' -- cells of the records that this transaction puts

-- Conditions first. set collects what fields become; each field is written by one clause at most.
local set, order = {}, {}
local function put(f, v)
  order[#order + 1] = f
  set[f] = v
end
local first = at + n
local i, index, last = first, 0, #A - 1 -- the last argument names the lease in its queue
while i <= last do
  local op = A[i]
  if op == 'V' then
    local c = cur[num(A[i + 1])]
    if (c and sub(c, 1, 16) or ZERO) ~= A[i + 2] then return reply(0, index, 0, '0') end
    i = i + 3
  elseif op == 'P' then
    local f = num(A[i + 1])
    local c = cur[f]
    local ver = c and fmt('%016.0f', num(sub(c, 1, 16)) + 1) or '0000000000000001'
    put(f, ver .. A[i + 2])
    if f > oR and f <= oR + nR then
      local name = A[at + f - 1]
      owned = owned .. fmt('%04d', #name) .. name .. ver
    end
    i = i + 3
  elseif op == 'C' or op == 'c' then
    local f = num(A[i + 1])
    local v, d = num(cur[f] or 0), num(A[i + 2])
    if op == 'C' then
      local s = v + d
      if v < num(A[i + 3]) or s > num(A[i + 4]) or s < -9007199254740991 then return reply(0, index, 0, '0') end
    end
    if d ~= 0 then put(f, fmt('%.0f', math.min(math.max(v + d, -9007199254740991), 9007199254740991))) end
    i = i + 5
  elseif op == 'H' then
    if not matches(cur[num(A[i + 1])], A[i + 2], num(A[i + 3])) then return reply(0, index, 0, '0') end
    i = i + 4
  elseif op == 'K' or op == 'k' then
    local f = num(A[i + 1])
    local c, from, to = cur[f], A[i + 2], A[i + 3]
    local ok = matches(c, from, num(A[i + 4]))
    if not ok and op == 'K' then return reply(0, index, 0, '0') end
    if ok then
      if to == '' then if c then put(f, false) end
      elseif from == '' then put(f, now .. ZERO .. to)
      else put(f, sub(c, 1, 32) .. to .. sub(c, 33 + #from)) end
    end
    i = i + 5
  elseif op == 'S' then
    local f, d = num(A[i + 1]), num(A[i + 3])
    put(f, now .. (d > 0 and fmt('%016.0f', math.min(NOW + d, LAST)) or ZERO) .. A[i + 2])
    i = i + 4
  elseif op == 'W' then
    if NOW < num(A[i + 1]) or NOW > num(A[i + 2]) then return reply(0, index, 0, '0') end
    i = i + 3
  elseif op == 'E' or op == 'Q' then i = i + 4
  elseif op == 'L' then i = i + 6
  elseif op == 'U' or op == 'X' then i = i + 3
  elseif op == 'O' or op == 'D' then i = i + 2
  elseif op == 'R' then i = i + 4 + num(A[i + 3])
  else i = i + 1 end -- a reading
  index = index + 1
end

-- Nothing below is refused.
local seq = 0
i = first
while i <= last do
  local op = A[i]
  if op == 'E' then
    local s
    if A[i + 1] == 'T' then taskSeq = taskSeq + 1 s = taskSeq else agentSeq = agentSeq + 1 s = agentSeq end
    if seq == 0 then seq = s end
    call('XADD', K[num(A[i + 2])], fmt('%.0f-0', s), 't', now, 'e', A[i + 3])
    i = i + 4
  elseif op == 'L' then
    local s, size = num(A[i + 4]), A[i + 1] == 'T' and taskSeq or agentSeq
    if s <= size then
      local key, off = K[num(A[i + 2])], (s - 1) * 64
      local slot = call('GETRANGE', key, off, off)
      if slot == '' or slot == '\0' then
        local link = A[i + 5]
        if #link ~= 64 then
          call('HSET', K[num(A[i + 3])], A[i + 4], link)
          link = string.rep('~', 64)
        end
        call('SETRANGE', key, off, link)
      end
    end
    i = i + 6
  elseif op == 'O' then
    pended = pended + 1
    call('RPUSH', K[4], fmt('%.0f', pended) .. '|' .. A[i + 1])
    i = i + 2
  elseif op == 'D' then
    local upto, drop = num(A[i + 1]), 0
    for _, v in ipairs(call('LRANGE', K[4], 0, -1)) do
      if num(string.match(v, '^(%d+)|')) > upto then break end
      drop = drop + 1
    end
    if drop > 0 then call('LPOP', K[4], drop) end
    i = i + 2
  elseif op == 'Q' then
    call('ZADD', K[num(A[i + 1])], fmt('%.0f', NOW + num(A[i + 3])), A[i + 2])
    i = i + 4
  elseif op == 'R' then
    local m = num(A[i + 3])
    call('HSET', K[num(A[i + 1])], unpack(A, i + 4, i + 3 + m))
    if A[i + 2] == '1' then call('HSET', K[num(A[i + 1])], 'pending', call('LLEN', K[4])) end
    i = i + 4 + m
  elseif op == 'U' then
    call('ZREM', K[num(A[i + 1])], A[i + 2])
    i = i + 3
  elseif op == 'V' or op == 'P' or op == 'W' or op == 'X' then i = i + 3
  elseif op == 'H' or op == 'S' then i = i + 4
  elseif op == 'C' or op == 'c' or op == 'K' or op == 'k' then i = i + 5
  else i = i + 1 end
end

if raisesTask then taskRev = taskRev + 1 put(1, fmt('%.0f', taskRev)) end
if taskSeq > had then put(2, fmt('%.0f', taskSeq)) end
if raisesAgent then agentRev = agentRev + 1 put(oA + 1, fmt('%.0f', agentRev)) end
if agentSeq > num(cur[oA + 2] or 0) then put(oA + 2, fmt('%.0f', agentSeq)) end
if pended > num(cur[oA + 3] or 0) then put(oA + 3, fmt('%.0f', pended)) end

local untl = '0'
local member = A[#A] -- names the lease in queues
local function due(name) -- an intent that ended may go some time from now
  if keep >= 0 then call('ZADD', K[6], fmt('%.0f', NOW + keep), K[2] .. '\n' .. name) end
end
if phase ~= 'N' then
  local s16 = fmt('%016.0f', seq)
  local cells = lCells or ''
  if owned ~= '' then cells = (cells == '' and '\0' or cells) .. owned end
  local kept = lKept or '-'
  if phase == 'L' and step == '0' then -- a heartbeat: repeats of the last step are still recognised
    untl = fmt('%016.0f', NOW + ttl)
    put(oR + 1, 'B' .. lBy .. kept .. untl .. lSeq .. lFence .. '|' .. lStep .. '|' .. lOwner .. cells)
  elseif phase == 'B' or phase == 'L' then
    untl = fmt('%016.0f', NOW + ttl)
    put(oR + 1, 'B' .. phase .. kept .. untl .. s16 .. fence .. '|' .. (phase == 'L' and step or '0') .. '|' .. owner .. cells)
  else
    put(oR + 1, (phase == 'K' and 'K' or 'X') .. phase .. kept .. ZERO .. s16 .. fence .. '|' .. (lStep or '0') .. '|' .. owner .. cells)
    if phase ~= 'K' and kept == '-' then due(sub(A[at + oR], 2)) end
  end
  if untl ~= '0' then call('ZADD', K[5], num(untl), member) elseif lPhase == 'B' then call('ZREM', K[5], member) end
elseif owned ~= '' and lease then -- put later, and of the intent all the same
  put(oR + 1, lease .. (lCells == '' and '\0' or '') .. owned)
  if lPhase == 'X' and lKept == '-' then due(sub(A[at + oR], 2)) end
end

-- What is said of how long things are kept.
i = first
local over = nT > 0 and cur[3]
while i <= last and expires do
  local op = A[i]
  if op == 'X' then
    local f = num(A[i + 1])
    if f == 0 then
      over = '1'
      put(3, over)
    else
      local l = set[f] or cur[f]
      local kept = A[i + 2] == '-1' and 'k' or '-'
      if l and sub(l, 3, 3) ~= kept then
        local n = num(set[4] or cur[4] or 0) + (kept == 'k' and 1 or -1)
        if set[4] == nil then put(4, fmt('%.0f', n)) else set[4] = fmt('%.0f', n) end
        l = sub(l, 1, 2) .. kept .. sub(l, 4)
        if set[f] == nil then put(f, l) else set[f] = l end
      end
      local name = sub(A[at + f - 1], 2)
      if l and kept == 'k' then call('ZREM', K[6], K[2] .. '\n' .. name) elseif l and sub(l, 1, 1) == 'X' then due(name) end
    end
    i = i + 3
  elseif op == 'V' or op == 'P' or op == 'W' or op == 'U' then i = i + 3
  elseif op == 'H' or op == 'S' or op == 'E' or op == 'Q' then i = i + 4
  elseif op == 'C' or op == 'c' or op == 'K' or op == 'k' then i = i + 5
  elseif op == 'L' then i = i + 6
  elseif op == 'O' or op == 'D' then i = i + 2
  elseif op == 'R' then i = i + 4 + num(A[i + 3])
  else i = i + 1 end
end

-- One write a hash.
local function store(key, from, upto)
  local w, d = {}, {}
  for _, f in ipairs(order) do
    if f > from and f <= upto then
      local v = set[f]
      cur[f] = v
      local name = A[at + f - 1]
      if v then w[#w + 1] = name w[#w + 1] = v else d[#d + 1] = name end
    end
  end
  for j = 1, #w, 2000 do call('HSET', key, unpack(w, j, math.min(j + 1999, #w))) end
  for j = 1, #d, 2000 do call('HDEL', key, unpack(d, j, math.min(j + 1999, #d))) end
end
if #order > 0 then
  if nT > 0 then store(K[1], 0, nT) store(K[2], oR, oR + nR) end
  store(K[3], oA, n)
end

-- A task that is over goes some time after its last transaction, unless one of its intents runs or is kept.
if over and keep >= 0 then
  local busy = num(cur[4] or 0) > 0
  if not busy then
    local prefix = string.match(member, '^[^\n]*\n')
    for _, m in ipairs(call('ZRANGE', K[5], 0, -1)) do
      if sub(m, 1, #prefix) == prefix then busy = true break end
    end
  end
  for j = 1, 2 do
    if busy then call('PERSIST', K[j]) else call('PEXPIRE', K[j], math.floor(keep / 1000)) end
  end
end

-- A few of the intents that may go do, with the cells that nobody else has put since.
if phase ~= 'B' and phase ~= 'L' then
  for _, m in ipairs(call('ZRANGEBYSCORE', K[6], '-inf', now, 'LIMIT', 0, 4)) do
    local key, name = string.match(m, '^([^\n]*)\n(.*)$')
    local l = call('HGET', key, 'l' .. name)
    local cells = l and string.match(l, '%z(.*)$') or ''
    local gone, p = { 'l' .. name }, 1
    while p <= #cells do
      local size = num(sub(cells, p, p + 3))
      local field, ver = sub(cells, p + 4, p + 3 + size), sub(cells, p + 4 + size, p + 19 + size)
      local c = call('HGET', key, field)
      if c and sub(c, 1, 16) == ver then gone[#gone + 1] = field end
      p = p + 20 + size
    end
    call('HDEL', key, unpack(gone))
    call('ZREM', K[6], m)
  end
end
return reply(1, -1, seq, untl)
