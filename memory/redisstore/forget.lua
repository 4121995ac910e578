-- Drop what is left of a task, where its state is gone and its ledger is the one that was seen. KEYS: the task, its ledger, the
-- links, links of another length, the records, the ends. ARGV: how many records the ledger has, and the link of the last one.
-- Returns 0 where it is dropped or nothing was there, 1 where the state is kept, 2 where another ledger stands there.
if redis.call('EXISTS', KEYS[1]) == 1 then return 1 end
local n = redis.call('LLEN', KEYS[2])
if n > 0 then
  if n ~= tonumber(ARGV[1]) then return 2 end
  local link = redis.call('HGET', KEYS[4], ARGV[1]) or redis.call('GETRANGE', KEYS[3], (n - 1) * 64, n * 64 - 1)
  if link ~= ARGV[2] then return 2 end
end
redis.call('UNLINK', KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6])
return 0
