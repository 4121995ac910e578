-- Drop the beginning of an agent's own ledger, at most so many records of it, and their links. KEYS: the agent, its ledger, the
-- links, links of another length. ARGV: the number of the last record to drop, and how many at most. Returns how many are
-- left to drop, -1 where nothing would be left of the ledger.
local base = tonumber(redis.call('HGET', KEYS[1], 'b') or 0)
local upto, most = tonumber(ARGV[1]), tonumber(ARGV[2])
if upto <= base then return 0 end
if upto >= base + redis.call('LLEN', KEYS[2]) then return -1 end
local n = math.min(upto - base, most)
redis.call('LTRIM', KEYS[2], n, -1)
local links = redis.call('GETRANGE', KEYS[3], n * 64, -1)
if links == '' then redis.call('DEL', KEYS[3]) else redis.call('SET', KEYS[3], links) end
for _, seq in ipairs(redis.call('HKEYS', KEYS[4])) do
  if tonumber(seq) <= base + n then redis.call('HDEL', KEYS[4], seq) end
end
redis.call('HSET', KEYS[1], 'b', string.format('%.0f', base + n))
return upto - base - n
