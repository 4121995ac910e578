-- Appends entries to a stream, in order, unless their ledger has got further already.
-- KEYS: the stream, the hash ledger -> number of its last entry. ARGV: the length to keep about (0: all), then of each
-- entry ledger, seq, event, status, code, agent, action, entry.
local keep = ARGV[1]
local added = 0
for i = 2, #ARGV, 8 do
  local last = redis.call('HGET', KEYS[2], ARGV[i])
  if not last or tonumber(last) < tonumber(ARGV[i + 1]) then
    local fields = {'ledger', ARGV[i], 'seq', ARGV[i + 1], 'event', ARGV[i + 2], 'status', ARGV[i + 3], 'code', ARGV[i + 4],
      'agent', ARGV[i + 5], 'action', ARGV[i + 6], 'entry', ARGV[i + 7]}
    if keep == '0' then
      redis.call('XADD', KEYS[1], '*', unpack(fields))
    else
      redis.call('XADD', KEYS[1], 'MAXLEN', '~', keep, '*', unpack(fields))
    end
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
    added = added + 1
  end
end
return added
