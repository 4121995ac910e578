-- One transaction of one agent: check the lease, check every condition on what is there, then write, all or nothing.
-- The layout of keys and arguments is in encode.go, that of the values in value.go. Numbers stay below 2^53, where Lua's
-- doubles are exact; those that are compared as text have 16 digits. A server runs this for every step of every call: it
-- has few functions, because each is made anew, one command for each key, and what is rarely needed is read late.
local A, K, call, sub, byte, fmt, num = ARGV, KEYS, redis.call, string.sub, string.byte, string.format, tonumber
local now = call('TIME')
now = now[1] .. sub('000000', #now[2] + 1) .. now[2]
local NOW = num(now)
local ZERO = '0000000000000000'
local phase, nT, nR, nA = A[1], num(A[5]), num(A[6]), num(A[7])
local inTask, inAgent, reads, writesTask, expires = byte(A[2], 1, 5) -- 49 where it is so

-- cur holds the values of the named fields: of the task's hash, of its records', of the agent's. The first of the task and
-- of the agent are their heads, the first of the records is the lease, the second of the agent the pending outcomes.
local oR, n = nT, nT + nR + nA
local oA = n - nA
local at, cur = 15, nil -- at is where the names begin
if n < 1000 then
  local r
  if nT > 0 then
    cur = call('HMGET', K[1], unpack(A, at, at + oR - 1))
    if nR > 0 then
      r = call('HMGET', K[2], unpack(A, at + oR, at + oA - 1))
      for i = 1, nR do cur[oR + i] = r[i] end
    end
    r = call('HMGET', K[3], unpack(A, at + oA, at + n - 1))
    for i = 1, nA do cur[oA + i] = r[i] end
  else
    cur = call('HMGET', K[3], unpack(A, at, at + n - 1))
  end
else
  cur = {}
  for h, span in ipairs({ { 0, nT }, { oR, nR }, { oA, nA } }) do
    for i = span[1], span[1] + span[2] - 1, 1000 do
      local k = math.min(span[1] + span[2] - i, 1000)
      local r = call('HMGET', K[h], unpack(A, at + i, at + i + k - 1))
      for j = 1, k do cur[i + j] = r[j] end
    end
  end
end

-- Heads: of the task revision, length of the ledger, whether it is over, how many of its intents are kept; of the agent
-- revision, length of the ledger, number of outcomes ever pended.
local headT, headA, pending = nT > 0 and cur[1], cur[oA + 1], cur[oA + 2] or ''
local taskRev, life = 0, '00' -- life is what follows in the task's head
local agentRev = headA and num(sub(headA, 1, 16)) or 0
local gone
if headT then
  taskRev, life = num(sub(headT, 1, 16)), sub(headT, 33)
elseif nT > 0 and call('EXISTS', K[6]) == 1 then -- it was over and has gone; its ledger is left
  taskRev, gone = 4503599627370496, true
end

-- The records by which the caller knows task and agent: another one in their place is of another history, and nothing is
-- written. Those of the agent's own ledger are counted from its end, because it may have been cut at its start.
local other, known, by = 0, A[12], A[13]
if known ~= '' then
  local e = call('LINDEX', K[6], num(sub(known, 18)) - 1)
  if not e or sub(e, 1, 16) ~= sub(known, 1, 16) then other = 1 end
end
if by == known and by ~= '' and A[14] == '6' then other = other * 3
elseif by ~= '' then
  local e, place = nil, num(sub(by, 18))
  if byte(by, 17) == 65 then
    local left = place - (headA and num(sub(headA, 17, 32)) or 0) - 1
    e = left >= 0 and '' or call('LINDEX', K[num(A[14])], left) or by
  else e = call('LINDEX', K[num(A[14])], place - 1) end
  if not e or sub(e, 1, 16) ~= sub(by, 1, 16) then other = other + 2 end
end

local status, seq, untl, failed = 1, 0, '0', -1 -- status: 0 refused, 1 accepted, 2 accepted before, 3 of another history
if other > 0 then status, failed = 3, other
elseif gone and writesTask == 49 then status = 0 end

-- The lease: phase, the phase that left it so, whether it is kept, until when (running) or from when on it may go (ended),
-- sequence, then fence|step|owner, and behind a NUL the cells that its transactions put: length, name, version.
local lease = nR > 0 and cur[oR + 1]
local lPhase, lBy, lKept, lUntil, lSeq, lFence, lStep, lOwner, lCells
if lease then
  lPhase, lBy, lKept, lUntil, lSeq = sub(lease, 1, 1), sub(lease, 2, 2), sub(lease, 3, 3), sub(lease, 4, 19), sub(lease, 20, 35)
  lFence, lStep, lOwner, lCells = string.match(lease, '^(%d+)|(%d+)|(%Z*)(.*)$', 36)
end
local fence, owner, step = A[3], A[4], A[9]
if phase ~= 'N' and status == 1 then
  local ok
  if lease then
    local same = lFence == fence and lOwner == owner
    if same and lBy == phase then
      if phase == 'B' then
        if lUntil > now then status, untl = 2, lUntil end
      elseif phase ~= 'L' then status = 2
      elseif step ~= '0' and step == lStep then status, untl = 2, lUntil end
    end
    if phase == 'X' then ok = lPhase == 'B' and same
    elseif phase == 'L' then ok = lPhase == 'B' and same and (step == '0' or num(step) == num(lStep) + 1)
    elseif phase == 'Z' then ok = lPhase == 'K' and fence == '1'
    elseif phase == 'B' or phase == 'Y' then
      ok = lPhase == 'B' and lUntil <= now and num(fence) == num(lFence) + 1 or phase == 'B' and lPhase == 'K' and fence == '1'
    end
  else ok = fence == '1' and phase ~= 'L' and phase ~= 'X' and phase ~= 'Y' end
  if status == 2 then seq = num(lSeq) elseif not ok then status = 0 end
end

-- Conditions first, field by field in their order: f is the field, w what its hash becomes, d what goes from it. A field is
-- written by one entry at most.
local wT, wR, wA, dT, dR, dA = {}, {}, {}, {}, {}, {}
local set = reads == 49 and {} -- what fields became, where that is asked for
local w, d, f, index = wT, dT, 2, 0
local owned, told = '', nil -- owned names the cells of the records that this transaction puts, told is the place of one whose text is an event
local i, stop = at + n, #A
if status ~= 1 then i = stop + 1 end
while i <= stop do
  local op = A[i]
  if op == 'c' or op == 'C' then
    local v, by = num(cur[f] or 0), num(A[i + 1])
    i = i + 2
    if op == 'C' then
      if v < num(A[i]) or v > num(A[i + 1]) then status, failed = 0, index break end
      i = i + 2
    end
    if by ~= 0 then
      v = v + by
      if v > 9007199254740991 then v = 9007199254740991 elseif v < -9007199254740991 then v = -9007199254740991 end
      v = fmt('%d', v)
      local k = #w
      w[k + 1], w[k + 2] = A[at + f - 1], v
      if set then set[f] = v end
    end
    f = f + 1
  elseif op == 'V' then
    local c = cur[f]
    if (c and sub(c, 1, 16) or ZERO) ~= A[i + 1] then status, failed = 0, index break end
    i, f = i + 2, f + 1
  elseif op == 'P' or op == 'p' or op == 's' then -- p: its text is that of the event of that number in this transaction; s: it stays
    local c, v = cur[f], A[i + 1]
    local ver, name, k = c and fmt('%016d', sub(c, 1, 16) + 1) or '0000000000000001', A[at + f - 1], #w
    if op == 'p' then
      told = told or {}
      told[#told + 1] = { k + 2, f, ver, v }
    end
    v = ver .. v
    w[k + 1], w[k + 2] = name, v
    if set then set[f] = v end
    if w == wR and op ~= 's' then owned = owned .. fmt('%04d', #name) .. name .. ver end
    i, f = i + 2, f + 1
  elseif op == 'r' then -- the fields of the records follow
    w, d, f, i, index = wR, dR, oR + 2, i + 1, index - 1
  elseif op == 'a' then -- those of the agent
    w, d, f, i, index = wA, dA, oA + 3, i + 1, index - 1
  elseif op == '<' then -- the same field once more
    f, i, index = f - 1, i + 1, index - 1
  elseif op == '?' then -- a reading
    f, i = f + 1, i + 1
  elseif op == 'H' or op == 'K' or op == 'k' then
    -- The state it must be in with its length before it, '' absent or expired; then 0, a greatest age, or negative where its
    -- expiry does not count.
    local c, from, fresh = cur[f], A[i + 1], A[i + 2]
    local e, ok = c and sub(c, 17, 32), nil
    if from == '' then ok = not c or e ~= ZERO and e <= now
    elseif not c or sub(c, 33, 32 + #from) ~= from then ok = false
    elseif fresh == '-1' then ok = true
    else ok = (e == ZERO or e > now) and (fresh == '0' or num(sub(c, 1, 16)) + fresh >= NOW) end
    if not ok and op ~= 'k' then status, failed = 0, index break end
    if op == 'H' then i = i + 3
    else
      local to, v = A[i + 3], nil
      i = i + 4
      if ok and to == '' then
        if c then
          d[#d + 1] = A[at + f - 1]
          if set then set[f] = false end
        end
      elseif ok then
        if from == '' then v = now .. ZERO .. to else v = sub(c, 1, 32) .. to .. sub(c, 33 + #from) end
        local k = #w
        w[k + 1], w[k + 2] = A[at + f - 1], v
        if set then set[f] = v end
      end
    end
    f = f + 1
  elseif op == 'S' then
    local lasts, k = num(A[i + 2]), #w
    local v = now .. (lasts > 0 and fmt('%016d', math.min(NOW + lasts, 9999999999999999)) or ZERO) .. A[i + 1]
    w[k + 1], w[k + 2] = A[at + f - 1], v
    if set then set[f] = v end
    i, f = i + 3, f + 1
  elseif op == 'W' then
    if NOW < num(A[i + 1]) or NOW > num(A[i + 2]) then status, failed = 0, index break end
    i = i + 3
  else break end -- what follows has no condition
  index = index + 1
end


if status == 1 then -- Nothing below is refused. A ledger says by its length which record was appended.
local was, events = pending, told and {}
local taskSeq, agentSeq, pended, lasting -- nil where nothing changes them
local base -- how many records were dropped from the beginning of the agent's own ledger, once that was read
while i <= stop do
  local op = A[i]
  if op == 'E' then
    taskSeq = call('RPUSH', K[6], now .. A[i + 1])
    if seq == 0 then seq = taskSeq end
    if told then events[#events + 1] = taskSeq end
    i = i + 2
  elseif op == 'O' then
    pended = (pended or headA and num(sub(headA, 33)) or 0) + 1
    pending = pending .. fmt('%016d%08d', pended, #A[i + 1]) .. A[i + 1]
    i = i + 2
  elseif op == 'e' then
    base = base or num(call('HGET', K[3], 'b') or 0)
    agentSeq = call('RPUSH', K[num(A[i + 1])], now .. A[i + 2]) + base
    if seq == 0 then seq = agentSeq end
    i = i + 3
  elseif op == 'D' then
    local upto, p = fmt('%016d', A[i + 1]), 1
    while p < #pending and sub(pending, p, p + 15) <= upto do p = p + 24 + sub(pending, p + 16, p + 23) end
    pending = sub(pending, p)
    i = i + 2
  elseif op == 'M' then -- links of records in a row
    local key, s, link = K[num(A[i + 2])], num(A[i + 3]), A[i + 4]
    local have
    local before = 0
    if A[i + 1] == 'T' then have = taskSeq or headT and num(sub(headT, 17, 32)) or gone and call('LLEN', K[6]) or 0
    else
      base = base or num(call('HGET', K[3], 'b') or 0)
      have, before = agentSeq or headA and num(sub(headA, 17, 32)) or 0, base
    end
    if s - 1 + #link / 64 > have then link = sub(link, 1, math.max(0, have - s + 1) * 64) end
    if s <= before then link, s = sub(link, (before - s + 1) * 64 + 1), before + 1 end
    if link ~= '' then
      local off = (s - 1 - before) * 64
      local slots = call('GETRANGE', key, off, off + #link - 1)
      if not string.find(slots, '%Z') then call('SETRANGE', key, off, link)
      else
        for j = 1, #link, 64 do
          local slot = byte(slots, j)
          if not slot or slot == 0 then call('SETRANGE', key, off + j - 1, sub(link, j, j + 63)) end
        end
      end
    end
    i = i + 5
  elseif op == 'L' then -- one of another length
    local key, s = K[num(A[i + 2])], num(A[i + 4])
    local have
    local before = 0
    if A[i + 1] == 'T' then have = taskSeq or headT and num(sub(headT, 17, 32)) or gone and call('LLEN', K[6]) or 0
    else
      base = base or num(call('HGET', K[3], 'b') or 0)
      have, before = agentSeq or headA and num(sub(headA, 17, 32)) or 0, base
    end
    if s > before and s <= have then
      local off = (s - 1 - before) * 64
      local slot = call('GETRANGE', key, off, off)
      if slot == '' or slot == '\0' then
        call('HSET', K[num(A[i + 3])], A[i + 4], A[i + 5])
        call('SETRANGE', key, off, string.rep('~', 64))
      end
    end
    i = i + 6
  elseif op == 'Q' then
    call('ZADD', K[num(A[i + 1])], fmt('%d', NOW + A[i + 3]), A[i + 2])
    i = i + 4
  elseif op == 'U' then
    call('ZREM', K[num(A[i + 1])], A[i + 2])
    i = i + 3
  elseif op == 'X' then
    lasting = lasting or {}
    lasting[#lasting + 1] = i
    i = i + 3
  elseif op == 'R' then
    call('HSET', K[num(A[i + 1])], unpack(A, i + 4, i + 3 + A[i + 3]))
    if A[i + 2] == '1' then
      local c, p = 0, 1
      while p < #pending do c = c + 1 p = p + 24 + sub(pending, p + 16, p + 23) end
      call('HSET', K[num(A[i + 1])], 'pending', c)
    end
    i = i + 4 + A[i + 3]
  end
end
if told then
  for j = 1, #told do
    local x = told[j]
    local v = x[3] .. '\1' .. fmt('%d', events[num(x[4])])
    wR[x[1]] = v
    if set then set[x[2]] = v end
  end
end

-- The lease, and what is said of how long things are kept.
local keep = num(A[8])
local later = keep >= 0 and fmt('%016d', NOW + keep) or ZERO -- when an intent that ends now may go
local leased -- what the intent's own lease becomes
if phase ~= 'N' then
  local cells, kept = lCells or '', lKept or '-'
  if owned ~= '' then
    if cells == '' then cells = '\0' end
    cells = cells .. owned
  end
  if phase == 'B' or phase == 'L' then
    untl = fmt('%016d', NOW + A[10])
    if phase == 'L' and step == '0' then -- a heartbeat: repeats of the last step are still recognised
      leased = 'B' .. lBy .. kept .. untl .. lSeq .. lFence .. '|' .. lStep .. '|' .. lOwner .. cells
    else
      leased = fmt('B%s%s%s%016d%s|%s|', phase, kept, untl, seq, fence, phase == 'L' and step or '0') .. owner .. cells
    end
    call('ZADD', K[4], untl, A[11])
  elseif phase == 'K' then
    leased = 'KK' .. kept .. ZERO .. fmt('%016d', seq) .. fence .. '|0|' .. owner .. cells
  else
    local due = kept == '-' and later or ZERO
    if due ~= ZERO then call('RPUSH', K[5], due .. sub(A[at + oR], 2)) end
    leased = fmt('X%s%s%s%016d%s|%s|', phase, kept, due, seq, fence, lStep or '0') .. owner .. cells
  end
  if lPhase == 'B' and phase ~= 'B' and phase ~= 'L' then call('ZREM', K[4], A[11]) end
elseif owned ~= '' and lease then -- put later, and of the intent all the same
  local due = lUntil
  if lPhase == 'X' and lKept == '-' then
    due = later
    if due ~= ZERO then call('RPUSH', K[5], due .. sub(A[at + oR], 2)) end
  end
  leased = sub(lease, 1, 3) .. due .. sub(lease, 20) .. (lCells == '' and '\0' or '') .. owned
end
local leases
if lasting then
  local over, kept = sub(life, 1, 1), num(sub(life, 2))
  leases = { [oR + 1] = leased }
  for j = 1, #lasting do
    i = lasting[j]
    local place = num(A[i + 1])
    if place == 0 then over = '1'
    else
      local l, k = leases[place] or cur[place], A[i + 2] == '-1' and 'k' or '-'
      if l then
        if sub(l, 3, 3) ~= k then kept = kept + (k == 'k' and 1 or -1) end
        local due = sub(l, 4, 19)
        if sub(l, 1, 1) == 'X' then
          due = k == 'k' and ZERO or later
          if due ~= ZERO then call('RPUSH', K[5], due .. sub(A[at + place - 1], 2)) end
        end
        leases[place] = sub(l, 1, 2) .. k .. due .. sub(l, 20)
      end
    end
  end
  life = over .. fmt('%d', kept)
elseif leased then leases = { [oR + 1] = leased } end
if leases then
  for place, l in pairs(leases) do
    local k = #wR
    wR[k + 1], wR[k + 2] = A[at + place - 1], l
    if set then set[place] = l end
  end
end

-- One write a hash.
if inTask == 49 then taskRev = taskRev + 1 end
if inAgent == 49 then agentRev = agentRev + 1 end
if nT > 0 and not gone and (inTask == 49 or taskSeq or lasting) then
  local k = #wT
  wT[k + 1] = 'm'
  if taskSeq then wT[k + 2] = fmt('%016d%016d', taskRev, taskSeq) .. life
  else wT[k + 2] = fmt('%016d', taskRev) .. (headT and sub(headT, 17, 32) or ZERO) .. life end
end
if inAgent == 49 or agentSeq or pended then
  local k = #wA
  wA[k + 1] = 'm'
  wA[k + 2] = fmt('%016d', agentRev) .. (agentSeq and fmt('%016d', agentSeq) or headA and sub(headA, 17, 32) or ZERO)
    .. (pended and fmt('%016d', pended) or headA and sub(headA, 33) or ZERO)
  if pending ~= was then wA[k + 3], wA[k + 4] = 'p', pending end
end
if #wT + #wR + #wA <= 2000 then
  if wT[1] then call('HSET', K[1], unpack(wT)) end
  if wR[1] then call('HSET', K[2], unpack(wR)) end
  if wA[1] then call('HSET', K[3], unpack(wA)) end
else
  for h, list in ipairs({ wT, wR, wA }) do
    for j = 1, #list, 2000 do call('HSET', K[h], unpack(list, j, math.min(j + 1999, #list))) end
  end
end
if dT[1] or dR[1] or dA[1] then
  for h, list in ipairs({ dT, dR, dA }) do
    for j = 1, #list, 2000 do call('HDEL', K[h], unpack(list, j, math.min(j + 1999, #list))) end
  end
end

-- A task that is over goes some time after its last transaction, unless one of its intents runs or is kept.
if keep >= 0 and not gone and byte(life) == 49 then
  local busy = num(sub(life, 2)) > 0
  if not busy then
    local prefix = string.match(A[11], '^[^\n]*\n')
    for _, m in ipairs(call('ZRANGE', K[4], 0, -1)) do
      if sub(m, 1, #prefix) == prefix then busy = true break end
    end
  end
  for _, j in ipairs({ 1, 2, 5 }) do
    if busy then call('PERSIST', K[j]) else call('PEXPIRE', K[j], math.floor(keep / 1000)) end
  end
end

-- A few of the intents that may go do, with the cells that nobody else has put since.
if keep >= 0 and nT > 0 and phase ~= 'B' and phase ~= 'L' then
  for _ = 1, 4 do
    local m = call('LINDEX', K[5], 0)
    if not m or sub(m, 1, 16) > now then break end
    call('LPOP', K[5])
    local key, name = K[2], sub(m, 17)
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
end

local out = { status, failed, now, seq, untl, taskRev, agentRev, pending }
if status == 0 or set then
  for j = 1, n do
    local v = cur[j]
    if status == 1 and set[j] ~= nil then v = set[j] end
    if v and j > oR + 1 and j <= oA and byte(v, 17) == 1 then -- its text is that of a record
      local e = call('LINDEX', K[6], num(sub(v, 18)) - 1)
      v = e and sub(v, 1, 16) .. sub(e, 17)
    end
    out[8 + j] = v
  end
end
return out
