-- One transaction of one agent: check the lease, check every condition on what is there, then write, all or nothing.
-- The layout of keys and arguments is in encode.go, that of the values in value.go. Numbers stay below 2^53, where Lua's
-- doubles are exact; those that are compared as text have 16 digits. A server runs this for every step of every call: it
-- has few functions, because each is made anew, one command for each key, and what is rarely needed is read late.
local A, K, call, sub, byte, fmt, num = ARGV, KEYS, redis.call, string.sub, string.byte, string.format, tonumber
local t = call('TIME')
local now = t[1] .. sub('000000', #t[2] + 1) .. t[2]
local NOW = num(now)
local ZERO = '0000000000000000'
local phase, nT, nR, nA = A[1], num(A[5]), num(A[6]), num(A[7])
local inTask, inAgent, reads, writesTask, _, appends = byte(A[2], 1, 6) -- 49 where it is so

-- cT, cR and cA hold the values of the named fields: of the task's hash, of its records', of the agent's. The first of the
-- task and of the agent are their heads, the first of the records is the lease.
-- atT, atR and atA are where their names begin, less one.
local atT = 17
local atR = atT + nT
local atA = atR + nR
local cT, cR, cA = {}, {}, nil
if nT + nR + nA < 1000 then
  if nT > 0 then cT = call('HMGET', K[1], unpack(A, atT + 1, atR)) end
  if nR > 0 then cR = call('HMGET', K[2], unpack(A, atR + 1, atA)) end
  cA = call('HMGET', K[3], unpack(A, atA + 1, atA + nA))
else
  cA = {}
  for h, of in ipairs({ { cT, atT, nT }, { cR, atR, nR }, { cA, atA, nA } }) do
    for i = 0, of[3] - 1, 1000 do
      local k = math.min(of[3] - i, 1000)
      local r = call('HMGET', K[h], unpack(A, of[2] + i + 1, of[2] + i + k))
      for j = 1, k do of[1][i + j] = r[j] end
    end
  end
end

-- Heads: of the task revision, length of the ledger, when the first of the ends is due, when the newest record was written,
-- whether it is over, how many of its intents are kept; of the agent revision, length of the ledger, number of outcomes ever
-- pended, how many of them are folded. Lengths, times and what follows are kept as they are written.
local headT, headA = cT[1], cA[1]
local taskRev, taskLen, due, newest, life = 0, ZERO, ZERO, ZERO, '00' -- life is what follows in the task's head
local agentRev, agentLen, pended, folded = 0, ZERO, 0, 0
local gone
if headT then
  taskRev, taskLen, due, newest, life = num(sub(headT, 1, 16)), sub(headT, 17, 32), sub(headT, 33, 48), sub(headT, 49, 64), sub(headT, 65)
elseif nT > 0 and call('EXISTS', K[6]) == 1 then -- it was over and has gone; its ledger is left
  taskRev, gone = 4503599627370496, true
end
if headA then
  agentRev, agentLen, pended, folded = num(sub(headA, 1, 16)), sub(headA, 17, 32), num(sub(headA, 33, 48)), num(sub(headA, 49))
end
local dueWas = due

-- The records by which the caller knows task and agent: another one in their place is of another history, and nothing is
-- written. The task's head says which one is the newest; that the ledger has it is seen when another one is appended, else
-- by looking. Those of the agent's own ledger are counted from its end, because it may have been cut at its start.
local other, known, by = 0, A[12], A[14]
local atHead = known ~= '' and known == newest and A[13] == taskLen
if known ~= '' and not (atHead and appends == 49) then
  local e = call('LINDEX', K[6], num(A[13]) - 1)
  if not e or sub(e, 1, 16) ~= known then other = 1 end
end
if appends == 49 and not atHead then taskLen = fmt('%016d', call('LLEN', K[6])) end
if by == '=' then other = other * 3 -- the same
elseif by ~= '' then
  local e, place = nil, num(sub(A[15], 2))
  if byte(A[15], 1) == 65 then
    local left = place - agentLen - 1
    e = left >= 0 and '' or call('LINDEX', K[num(A[16])], left) or by
  else e = call('LINDEX', K[num(A[16])], place - 1) end
  if not e or sub(e, 1, 16) ~= by then other = other + 2 end
end

local status, seq, untl, failed = 1, 0, '0', -1 -- status: 0 refused, 1 accepted, 2 accepted before, 3 of another history
if other > 0 then status, failed = 3, other
elseif gone and writesTask == 49 then status = 0 end

-- The lease: phase, the phase that left it so, whether it is kept, until when (running) or from when on it may go (ended),
-- sequence, then fence|step|owner, and behind a NUL the cells that its transactions put: length, name, version.
local lease = cR[1]
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
local sT, sR, sA -- what fields became, where that is asked for
if reads == 49 then sT, sR, sA = {}, {}, {} end
local c, w, d, set, at, f, index = cT, wT, dT, sT, atT, 2, 0
local owned = '' -- names the cells of the records that this transaction puts
local i, stop = atA + nA + 1, #A
if status ~= 1 then i = stop + 1 end
while i <= stop do
  local op = A[i]
  if op == 'c' or op == 'C' then
    local v, by = num(c[f] or 0), num(A[i + 1])
    i = i + 2
    if op == 'C' then -- the least it may be, '' for anything, and the most
      if A[i] ~= '' and v < num(A[i]) or v > num(A[i + 1]) then status, failed = 0, index break end
      i = i + 2
    end
    if by ~= 0 then
      v = v + by
      if v > 9007199254740991 then v = 9007199254740991 elseif v < -9007199254740991 then v = -9007199254740991 end
      v = fmt('%d', v)
      local k = #w
      w[k + 1], w[k + 2] = A[at + f], v
      if set then set[f] = v end
    end
    f = f + 1
  elseif op == 'V' then
    local v = c[f]
    if (v and sub(v, 1, 16) or ZERO) ~= A[i + 1] then status, failed = 0, index break end
    i, f = i + 2, f + 1
  elseif op == 'P' or op == 'p' or op == 's' then -- p: its text is that of the event of that number in this transaction; s: it stays
    local v, ver, name, k = c[f], '0000000000000001', A[at + f], #w
    if v then ver = fmt('%016d', sub(v, 1, 16) + 1) end
    if op == 'p' then v = ver .. '\1' .. fmt('%d', taskLen + A[i + 1]) else v = ver .. A[i + 1] end
    w[k + 1], w[k + 2] = name, v
    if set then set[f] = v end
    if w == wR and op ~= 's' then owned = owned .. fmt('%04d', #name) .. name .. ver end
    i, f = i + 2, f + 1
  elseif op == 'r' then -- the fields of the records follow
    c, w, d, set, at, f, i, index = cR, wR, dR, sR, atR, 2, i + 1, index - 1
  elseif op == 'a' then -- those of the agent
    c, w, d, set, at, f, i, index = cA, wA, dA, sA, atA, 2, i + 1, index - 1
  elseif op == '<' then -- the same field once more
    f, i, index = f - 1, i + 1, index - 1
  elseif op == '?' then -- a reading
    f, i = f + 1, i + 1
  elseif op == 'H' or op == 'K' or op == 'k' then
    -- The state it must be in with its length before it, '' absent or expired; then 0, a greatest age, or negative where its
    -- expiry does not count.
    local v, from, fresh = c[f], A[i + 1], A[i + 2]
    local e, ok = v and sub(v, 17, 32), nil
    if from == '' then ok = not v or e ~= ZERO and e <= now
    elseif not v or sub(v, 33, 32 + #from) ~= from then ok = false
    elseif fresh == '-1' then ok = true
    else ok = (e == ZERO or e > now) and (fresh == '0' or num(sub(v, 1, 16)) + fresh >= NOW) end
    if not ok and op ~= 'k' then status, failed = 0, index break end
    if op == 'H' then i = i + 3
    else
      local to = A[i + 3]
      i = i + 4
      if ok and to == '' then
        if v then
          d[#d + 1] = A[at + f]
          if set then set[f] = false end
        end
      elseif ok then
        if from == '' then v = now .. ZERO .. to else v = sub(v, 1, 32) .. to .. sub(v, 33 + #from) end
        local k = #w
        w[k + 1], w[k + 2] = A[at + f], v
        if set then set[f] = v end
      end
    end
    f = f + 1
  elseif op == 'S' then
    local lasts, k = num(A[i + 2]), #w
    local v = now .. (lasts > 0 and fmt('%016d', math.min(NOW + lasts, 9999999999999999)) or ZERO) .. A[i + 1]
    w[k + 1], w[k + 2] = A[at + f], v
    if set then set[f] = v end
    i, f = i + 3, f + 1
  elseif op == 'W' then
    if NOW < num(A[i + 1]) or NOW > num(A[i + 2]) then status, failed = 0, index break end
    i = i + 3
  else break end -- what follows has no condition
  index = index + 1
end

-- A ledger says by its length which record was appended. Where it is shorter than the task's head says, records are missing,
-- and nothing else is written.
if status == 1 and appends == 49 and atHead then
  local had
  if A[i] == 'E' then
    had = call('RPUSH', K[6], now .. A[i + 1]) - 1
    if had == taskLen + 0 then seq, i = had + 1, i + 2 else call('RPOP', K[6]) end
  else had = call('LLEN', K[6]) end
  if had ~= taskLen + 0 then status, failed = 3, by == '=' and 3 or 1 end
end

local own = 0 -- outcomes that this transaction pends
if status == 1 then -- Nothing below is refused.
local taskSeq, agentSeq, lasting -- nil where nothing changes them
if seq > 0 then taskSeq = seq end
local base -- how many records were dropped from the beginning of the agent's own ledger, once that was read
while i <= stop do
  local op = A[i]
  if op == 'E' then
    taskSeq = call('RPUSH', K[6], now .. A[i + 1])
    if seq == 0 then seq = taskSeq end
    i = i + 2
  elseif op == 'O' then
    call('RPUSH', K[7], A[i + 1])
    pended, own, i = pended + 1, own + 1, i + 2
  elseif op == 'e' then
    base = base or num(call('HGET', K[3], 'b') or 0)
    agentSeq = call('RPUSH', K[num(A[i + 1])], now .. A[i + 2]) + base
    if seq == 0 then seq = agentSeq end
    i = i + 3
  elseif op == 'D' then
    local upto = math.min(num(A[i + 1]), pended)
    if upto > folded then
      call('LTRIM', K[7], upto - folded, -1)
      folded = upto
    end
    i = i + 2
  elseif op == 'M' then -- links of records in a row
    local key, s, link = K[num(A[i + 2])], num(A[i + 3]), A[i + 4]
    local have
    local before = 0
    if A[i + 1] == 'T' then have = taskSeq or gone and call('LLEN', K[6]) or num(taskLen)
    else
      base = base or num(call('HGET', K[3], 'b') or 0)
      have, before = agentSeq or num(agentLen), base
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
    if A[i + 1] == 'T' then have = taskSeq or gone and call('LLEN', K[6]) or num(taskLen)
    else
      base = base or num(call('HGET', K[3], 'b') or 0)
      have, before = agentSeq or num(agentLen), base
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
    if A[i + 2] == '1' then call('HSET', K[num(A[i + 1])], 'pending', pended - folded) end
    i = i + 4 + A[i + 3]
  end
end
-- The lease, and what is said of how long things are kept.
local keep = num(A[8])
local ends -- notes that an intent may go, and returns when; none does that begins or goes on
if lasting or phase ~= 'B' and phase ~= 'L' then
  local later = keep >= 0 and fmt('%016d', NOW + keep) or ZERO
  ends = function(intent)
    if later == ZERO then return ZERO end
    call('RPUSH', K[5], later .. sub(intent, 2))
    if due == ZERO then due = later end
    return later
  end
end
local seqText = fmt('%016d', seq)
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
      leased = 'B' .. phase .. kept .. untl .. seqText .. fence .. (phase == 'L' and '|' .. step .. '|' or '|0|') .. owner .. cells
    end
    call('ZADD', K[4], untl, A[11])
  elseif phase == 'K' then
    leased = 'KK' .. kept .. ZERO .. seqText .. fence .. '|0|' .. owner .. cells
  else
    leased = 'X' .. phase .. kept .. (kept == '-' and ends(A[atR + 1]) or ZERO) .. seqText .. fence .. '|' .. (lStep or '0') .. '|' .. owner .. cells
  end
  if lPhase == 'B' and phase ~= 'B' and phase ~= 'L' then call('ZREM', K[4], A[11]) end
elseif owned ~= '' and lease then -- put later, and of the intent all the same
  local at = lUntil
  if lPhase == 'X' and lKept == '-' then at = ends(A[atR + 1]) end
  leased = sub(lease, 1, 3) .. at .. sub(lease, 20) .. (lCells == '' and '\0' or '') .. owned
end
if lasting then
  local over, kept, leases = sub(life, 1, 1), num(sub(life, 2)), { leased }
  for j = 1, #lasting do
    i = lasting[j]
    local place = num(A[i + 1]) - nT
    if place <= 0 then over = '1'
    else
      local l, k = leases[place] or cR[place], A[i + 2] == '-1' and 'k' or '-'
      if l then
        if sub(l, 3, 3) ~= k then kept = kept + (k == 'k' and 1 or -1) end
        local at = sub(l, 4, 19)
        if sub(l, 1, 1) == 'X' then at = k == 'k' and ZERO or ends(A[atR + place]) end
        leases[place] = sub(l, 1, 2) .. k .. at .. sub(l, 20)
      end
    end
  end
  life = over .. fmt('%d', kept)
  for place, l in pairs(leases) do
    local k = #wR
    wR[k + 1], wR[k + 2] = A[atR + place], l
    if sR then sR[place] = l end
  end
elseif leased then
  local k = #wR
  wR[k + 1], wR[k + 2] = A[atR + 1], leased
  if sR then sR[1] = leased end
end

-- One write a hash. More fields than a command takes go in several.
for j = 2001, #wR, 2000 do call('HSET', K[2], unpack(wR, j, math.min(j + 1999, #wR))) end
if wR[1] then call('HSET', K[2], unpack(wR, 1, math.min(#wR, 2000))) end
if dT[1] or dR[1] or dA[1] then
  for h, list in ipairs({ dT, dR, dA }) do
    for j = 1, #list, 2000 do call('HDEL', K[h], unpack(list, j, math.min(j + 1999, #list))) end
  end
end

-- A few of the intents that may go do, with the cells that nobody else has put since.
if due ~= ZERO and due <= now and keep >= 0 and phase ~= 'B' and phase ~= 'L' then
  for _ = 1, 4 do
    local m = call('LINDEX', K[5], 0)
    due = m and sub(m, 1, 16) or ZERO
    if not m or due > now then break end
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

if inTask == 49 then taskRev = taskRev + 1 end
if inAgent == 49 then agentRev = agentRev + 1 end
if nT > 0 and not gone and (inTask == 49 or taskSeq or lasting or due ~= dueWas) then
  local k = #wT
  if taskSeq then taskLen, newest = taskSeq == seq and seqText or fmt('%016d', taskSeq), now end
  wT[k + 1], wT[k + 2] = 'm', fmt('%016d', taskRev) .. taskLen .. due .. newest .. life
end
if inAgent == 49 or agentSeq then
  local k = #wA
  wA[k + 1], wA[k + 2] = 'm', fmt('%016d', agentRev) .. (agentSeq and fmt('%016d', agentSeq) or agentLen) .. fmt('%016d%016d', pended, folded)
end
for j = 2001, #wT, 2000 do call('HSET', K[1], unpack(wT, j, math.min(j + 1999, #wT))) end
for j = 2001, #wA, 2000 do call('HSET', K[3], unpack(wA, j, math.min(j + 1999, #wA))) end
if wT[1] then call('HSET', K[1], unpack(wT, 1, math.min(#wT, 2000))) end
if wA[1] then call('HSET', K[3], unpack(wA, 1, math.min(#wA, 2000))) end

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

end

-- Of the outcomes that are pending those come along that the caller neither knows nor has pended just now.
local knows, tail = num(A[17]), nil
if knows < folded or knows > pended - own then knows = folded end
if knows < pended - own then tail = call('LRANGE', K[7], knows - folded, pended - own - folded - 1) end
local out = { status, failed, now, seq, untl, taskRev, agentRev, pended, folded, own, knows, tail or false }
if status == 0 or reads == 49 then
  local n = 12
  for h, c in ipairs({ cT, cR, cA }) do
    local set = status == 1 and ({ sT, sR, sA })[h]
    for j = 1, ({ nT, nR, nA })[h] do
      local v = c[j]
      if set and set[j] ~= nil then v = set[j] end
      if v and h == 2 and j > 1 and byte(v, 17) == 1 then -- its text is that of a record
        local e = call('LINDEX', K[6], num(sub(v, 18)) - 1)
        v = e and sub(v, 1, 16) .. sub(e, 17)
      end
      n = n + 1
      out[n] = v
    end
  end
end
return out
