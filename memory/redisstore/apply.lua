-- One transaction of one agent: check the lease, check every condition on what is there, then write, all or nothing.
-- The layout of keys and arguments is in encode.go, that of the values in value.go. Numbers stay below 2^53, where Lua's
-- doubles are exact; those that are compared as text have 16 digits.
local A, K = ARGV, KEYS
local call, sub, fmt, num = redis.call, string.sub, string.format, tonumber
local t = call('TIME')
local us = t[2]
local now = t[1] .. sub('000000', #us + 1) .. us
local NOW = num(now)
local ZERO = '0000000000000000'
local function n16(n) return fmt('%016.0f', n) end
local function n0(n) return fmt('%.0f', n) end

local phase, fence, owner = A[1], A[2], A[3]
local flags, nT, nR, nA, keep = A[6], num(A[7]), num(A[8]), num(A[9]), num(A[10])
local reads, writesTask, expires = sub(flags, 3, 3) == '1', sub(flags, 4, 4) == '1', sub(flags, 5, 5) == '1'
local at = 11 -- of the first field name

-- cur holds the values of the named fields: of the task's hash, of its records', of the agent's. The first of the task and
-- of the agent are their heads, the first of the records is the lease, the second of the agent the pending outcomes.
local oR, oA = nT, nT + nR
local n = oA + nA
local cur
if nT > 0 and n < 1000 then
  cur = call('HMGET', K[1], unpack(A, at, at + nT - 1))
  local r = call('HMGET', K[2], unpack(A, at + oR, at + oA - 1))
  for i = 1, nR do cur[oR + i] = r[i] end
  r = call('HMGET', K[3], unpack(A, at + oA, at + n - 1))
  for i = 1, nA do cur[oA + i] = r[i] end
else
  cur = {}
  local function fetch(key, from, m)
    for i = from, from + m - 1, 1000 do
      local k = math.min(from + m - i, 1000)
      local r = call('HMGET', key, unpack(A, at + i, at + i + k - 1))
      for j = 1, k do cur[i + j] = r[j] end
    end
  end
  if nT > 0 then fetch(K[1], 0, nT) fetch(K[2], oR, nR) end
  fetch(K[3], oA, nA)
end

-- Heads: of the task revision, length of the ledger, whether it is over, how many of its intents are kept; of the agent
-- revision, length of the ledger, number of outcomes ever pended.
local taskRev, taskSeq, over, kept = 0, 0, '0', 0
local headT, headA = cur[1], cur[oA + 1]
local pending = cur[oA + 2] or ''
local gone
if nT > 0 then
  if headT then
    taskRev, taskSeq, over, kept = num(sub(headT, 1, 16)), num(sub(headT, 17, 32)), sub(headT, 33, 33), num(sub(headT, 34))
  elseif call('EXISTS', K[6]) == 1 then -- it was over and has gone; its ledger is left
    taskRev, taskSeq, gone = 4503599627370496, call('LLEN', K[6]), true
  end
else
  headA = cur[1]
  pending = cur[2] or ''
end
local agentRev, agentSeq, pended = 0, 0, 0
if headA then agentRev, agentSeq, pended = num(sub(headA, 1, 16)), num(sub(headA, 17, 32)), num(sub(headA, 33)) end

local set = {} -- what fields became, where that is asked for
local function reply(status, failed, seq, untl)
  local out = { status, failed, now, seq, untl, taskRev, agentRev, pending }
  if status == 0 or reads then
    for i = 1, n do
      local v = cur[i]
      if status == 1 and set[i] ~= nil then v = set[i] end
      if v and i > oR + 1 and i <= oA and sub(v, 17, 17) == '\1' then -- its text is that of a record
        local e = call('LINDEX', K[6], num(sub(v, 18)) - 1)
        v = e and sub(v, 1, 16) .. sub(e, 17)
      end
      out[8 + i] = v
    end
  end
  return out
end
if gone and writesTask then return reply(0, -1, 0, '0') end

-- The lease: phase, the phase that left it so, whether it is kept, until when (running) or from when on it may go (ended),
-- sequence, then fence|step|owner, and behind a NUL the cells that its transactions put: length, name, version.
local lease = nR > 0 and cur[oR + 1]
local lPhase, lBy, lKept, lUntil, lSeq, lFence, lStep, lOwner, lCells
if lease then
  lPhase, lBy, lKept, lUntil, lSeq, lFence, lStep, lOwner, lCells = string.match(lease, '^(.)(.)(.)(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)(%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d)(%d+)|(%d+)|(%Z*)(.*)$')
end
if phase ~= 'N' then
  local step = A[5]
  if lease then
    local same = lFence == fence and lOwner == owner
    if same and lBy == phase then
      if phase == 'B' then
        if lUntil > now then return reply(2, -1, num(lSeq), lUntil) end
      elseif phase ~= 'L' then return reply(2, -1, num(lSeq), '0')
      elseif step ~= '0' and step == lStep then return reply(2, -1, num(lSeq), lUntil) end
    end
    local ok
    if phase == 'X' then ok = lPhase == 'B' and same
    elseif phase == 'L' then ok = lPhase == 'B' and same and (step == '0' or num(step) == num(lStep) + 1)
    elseif phase == 'Z' then ok = lPhase == 'K' and fence == '1'
    elseif phase == 'B' or phase == 'Y' then
      ok = lPhase == 'B' and lUntil <= now and num(fence) == num(lFence) + 1 or phase == 'B' and lPhase == 'K' and fence == '1'
    end
    if not ok then return reply(0, -1, 0, '0') end
  elseif fence ~= '1' or phase == 'L' or phase == 'X' or phase == 'Y' then return reply(0, -1, 0, '0') end
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
  if fresh == '-1' then return true end
  local e = sub(c, 17, 32)
  if e ~= ZERO and e <= now then return false end
  return fresh == '0' or num(sub(c, 1, 16)) + fresh >= NOW
end

-- Conditions first. wT, wR and wA collect what fields become, dT, dR and dA those that go; later holds the clauses without
-- a condition. A field is written by one clause at most.
local wT, wR, wA, dT, dR, dA = {}, {}, {}, {}, {}, {}
local function put(f, v)
  local w = f <= oR and wT or f <= oA and wR or wA
  local k = #w
  w[k + 1] = A[at + f - 1]
  w[k + 2] = v
  if reads then set[f] = v end
end
local owned, later = '', {} -- owned names the cells of the records that this transaction puts
local i, index, last = at + n, 0, #A - 1 -- the last argument names the lease in its queue
while i <= last do
  local op = A[i]
  if op == 'c' then
    local f = num(A[i + 1])
    local v = (cur[f] or 0) + A[i + 2]
    if v > 9007199254740991 then v = 9007199254740991 elseif v < -9007199254740991 then v = -9007199254740991 end
    put(f, n0(v))
    i = i + 3
  elseif op == 'P' or op == 'p' then -- p: its text is that of the event of that number in this transaction
    local f, v = num(A[i + 1]), A[i + 2]
    local c = cur[f]
    local ver = c and n16(sub(c, 1, 16) + 1) or '0000000000000001'
    if op == 'p' then v = '\1' .. n0(taskSeq + v) end
    put(f, ver .. v)
    if f > oR and f <= oA then
      local name = A[at + f - 1]
      owned = owned .. fmt('%04d', #name) .. name .. ver
    end
    i = i + 3
  elseif op == 'V' then
    local c = cur[num(A[i + 1])]
    if (c and sub(c, 1, 16) or ZERO) ~= A[i + 2] then return reply(0, index, 0, '0') end
    i = i + 3
  elseif op == 'E' then
    later[#later + 1] = i
    i = i + 4
  elseif op == 'O' or op == 'D' then
    later[#later + 1] = i
    i = i + 2
  elseif op == 'C' then
    local f = num(A[i + 1])
    local v, d = num(cur[f] or 0), num(A[i + 2])
    local s = v + d
    if v < num(A[i + 3]) or s > num(A[i + 4]) or s < -9007199254740991 then return reply(0, index, 0, '0') end
    if d ~= 0 then put(f, n0(s)) end
    i = i + 5
  elseif op == 'H' then
    if not matches(cur[num(A[i + 1])], A[i + 2], A[i + 3]) then return reply(0, index, 0, '0') end
    i = i + 4
  elseif op == 'K' or op == 'k' then
    local f = num(A[i + 1])
    local c, from, to = cur[f], A[i + 2], A[i + 3]
    local ok = matches(c, from, A[i + 4])
    if not ok and op == 'K' then return reply(0, index, 0, '0') end
    if ok then
      if to == '' then
        if c then
          local d = f <= oR and dT or f <= oA and dR or dA
          d[#d + 1] = A[at + f - 1]
          if reads then set[f] = false end
        end
      elseif from == '' then put(f, now .. ZERO .. to)
      else put(f, sub(c, 1, 32) .. to .. sub(c, 33 + #from)) end
    end
    i = i + 5
  elseif op == 'S' then
    local d = num(A[i + 3])
    put(num(A[i + 1]), now .. (d > 0 and n16(math.min(NOW + d, 9999999999999999)) or ZERO) .. A[i + 2])
    i = i + 4
  elseif op == 'W' then
    if NOW < num(A[i + 1]) or NOW > num(A[i + 2]) then return reply(0, index, 0, '0') end
    i = i + 3
  elseif op == 'Q' then
    later[#later + 1] = i
    i = i + 4
  elseif op == 'U' or op == 'X' then
    later[#later + 1] = i
    i = i + 3
  elseif op == 'L' then
    later[#later + 1] = i
    i = i + 6
  elseif op == 'R' then
    later[#later + 1] = i
    i = i + 4 + A[i + 3]
  else i = i + 1 end -- a reading
  index = index + 1
end

-- Nothing below is refused.
local seq, had, hadA = 0, taskSeq, agentSeq
for j = 1, #later do
  i = later[j]
  local op = A[i]
  if op == 'E' then
    local s
    if A[i + 1] == 'T' then taskSeq = taskSeq + 1 s = taskSeq else agentSeq = agentSeq + 1 s = agentSeq end
    if seq == 0 then seq = s end
    call('RPUSH', K[num(A[i + 2])], now .. A[i + 3])
  elseif op == 'O' then
    pended = pended + 1
    pending = pending .. n16(pended) .. fmt('%08d', #A[i + 1]) .. A[i + 1]
  elseif op == 'D' then
    local upto, p = n16(num(A[i + 1])), 1
    while p < #pending and sub(pending, p, p + 15) <= upto do p = p + 24 + sub(pending, p + 16, p + 23) end
    pending = sub(pending, p)
  elseif op == 'L' then
    local s = num(A[i + 4])
    if s <= (A[i + 1] == 'T' and taskSeq or agentSeq) then
      local key, off, link = K[num(A[i + 2])], (s - 1) * 64, A[i + 5]
      local slot = call('GETRANGE', key, off, off)
      if slot == '' or slot == '\0' then
        if #link ~= 64 then
          call('HSET', K[num(A[i + 3])], A[i + 4], link)
          link = string.rep('~', 64)
        end
        call('SETRANGE', key, off, link)
      end
    end
  elseif op == 'Q' then call('ZADD', K[num(A[i + 1])], n0(NOW + A[i + 3]), A[i + 2])
  elseif op == 'U' then call('ZREM', K[num(A[i + 1])], A[i + 2])
  elseif op == 'R' then
    call('HSET', K[num(A[i + 1])], unpack(A, i + 4, i + 3 + A[i + 3]))
    if A[i + 2] == '1' then
      local c, p = 0, 1
      while p < #pending do c = c + 1 p = p + 24 + sub(pending, p + 16, p + 23) end
      call('HSET', K[num(A[i + 1])], 'pending', c)
    end
  end
end

-- The lease, and what is said of how long things are kept.
local leases = {} -- by number of their field
local untl, member = '0', A[#A]
local function ends(name) -- an intent may go some time from now
  if keep < 0 then return ZERO end
  local due = n16(NOW + keep)
  call('RPUSH', K[5], due .. K[2] .. '\n' .. name)
  return due
end
if phase ~= 'N' then
  local step, cells, k = A[5], lCells or '', lKept or '-'
  if owned ~= '' then cells = (cells == '' and '\0' or cells) .. owned end
  if phase == 'X' or phase == 'Z' or phase == 'Y' then
    local due = k == '-' and ends(sub(A[at + oR], 2)) or ZERO
    leases[oR + 1] = fmt('X%s%s%s%016.0f%s|%s|%s', phase, k, due, seq, fence, lStep or '0', owner) .. cells
  elseif phase == 'K' then
    leases[oR + 1] = 'KK' .. k .. ZERO .. n16(seq) .. fence .. '|0|' .. owner .. cells
  else
    untl = n16(NOW + A[4])
    if phase == 'L' and step == '0' then -- a heartbeat: repeats of the last step are still recognised
      leases[oR + 1] = 'B' .. lBy .. k .. untl .. lSeq .. lFence .. '|' .. lStep .. '|' .. lOwner .. cells
    else
      leases[oR + 1] = fmt('B%s%s%s%016.0f%s|%s|%s', phase, k, untl, seq, fence, phase == 'L' and step or '0', owner) .. cells
    end
  end
  if untl ~= '0' then call('ZADD', K[4], untl, member) elseif lPhase == 'B' then call('ZREM', K[4], member) end
elseif owned ~= '' and lease then -- put later, and of the intent all the same
  local due = lUntil
  if lPhase == 'X' and lKept == '-' then due = ends(sub(A[at + oR], 2)) end
  leases[oR + 1] = sub(lease, 1, 3) .. due .. sub(lease, 20) .. (lCells == '' and '\0' or '') .. owned
end
if expires then
  for j = 1, #later do
    i = later[j]
    if A[i] == 'X' then
      local f = num(A[i + 1])
      if f == 0 then over = '1'
      else
        local l, k = leases[f] or cur[f], A[i + 2] == '-1' and 'k' or '-'
        if l then
          if sub(l, 3, 3) ~= k then kept = kept + (k == 'k' and 1 or -1) end
          local due = sub(l, 4, 19)
          if sub(l, 1, 1) == 'X' then due = k == 'k' and ZERO or ends(sub(A[at + f - 1], 2)) end
          leases[f] = sub(l, 1, 2) .. k .. due .. sub(l, 20)
        end
      end
    end
  end
end
for f, l in pairs(leases) do put(f, l) end

-- One write a hash.
if sub(flags, 1, 1) == '1' then taskRev = taskRev + 1 end
if sub(flags, 2, 2) == '1' then agentRev = agentRev + 1 end
if nT > 0 and not gone and (sub(flags, 1, 1) == '1' or taskSeq > had or expires) then
  wT[#wT + 1] = 'm'
  wT[#wT + 1] = fmt('%016.0f%016.0f%s%d', taskRev, taskSeq, over, kept)
end
if #wA > 0 or #dA > 0 or agentSeq > hadA or sub(flags, 2, 2) == '1' then
  local k = #wA
  wA[k + 1] = 'm'
  wA[k + 2] = fmt('%016.0f%016.0f%016.0f', agentRev, agentSeq, pended)
  if pending ~= (cur[oA + 2] or '') then
    wA[k + 3] = 'p'
    wA[k + 4] = pending
  end
end
local function store(cmd, key, w)
  if #w <= 2000 then
    if #w > 0 then call(cmd, key, unpack(w)) end
  else
    for j = 1, #w, 2000 do call(cmd, key, unpack(w, j, math.min(j + 1999, #w))) end
  end
end
store('HSET', K[1], wT) store('HSET', K[2], wR) store('HSET', K[3], wA)
store('HDEL', K[1], dT) store('HDEL', K[2], dR) store('HDEL', K[3], dA)

-- A task that is over goes some time after its last transaction, unless one of its intents runs or is kept.
if over == '1' and keep >= 0 and not gone then
  local busy = kept > 0
  if not busy then
    local prefix = string.match(member, '^[^\n]*\n')
    for _, m in ipairs(call('ZRANGE', K[4], 0, -1)) do
      if sub(m, 1, #prefix) == prefix then busy = true break end
    end
  end
  for j = 1, 2 do
    if busy then call('PERSIST', K[j]) else call('PEXPIRE', K[j], math.floor(keep / 1000)) end
  end
end

-- A few of the intents that may go do, with the cells that nobody else has put since.
if phase ~= 'B' and phase ~= 'L' then
  for _ = 1, 4 do
    local m = call('LINDEX', K[5], 0)
    if not m or sub(m, 1, 16) > now then break end
    call('LPOP', K[5])
    local key, name = string.match(m, '^([^\n]*)\n(.*)$', 17)
    local l = call('HGET', key, 'l' .. name)
    if l and sub(l, 1, 1) == 'X' and sub(l, 3, 3) == '-' and sub(l, 4, 19) <= now then
      local cells = string.match(l, '%z(.*)$') or ''
      local go, p = { 'l' .. name }, 1
      while p <= #cells do
        local size = num(sub(cells, p, p + 3))
        local field, ver = sub(cells, p + 4, p + 3 + size), sub(cells, p + 4 + size, p + 19 + size)
        local c = call('HGET', key, field)
        if c and sub(c, 1, 16) == ver then go[#go + 1] = field end
        p = p + 20 + size
      end
      call('HDEL', key, unpack(go))
    end
  end
end
return reply(1, -1, seq, untl)
