-- A page of an agent's own ledger, whose beginning may have been dropped. KEYS: the agent, its ledger, the links. ARGV: the
-- number of the first record that is wanted, and how many. Returns the number of the first one, the links, the records.
local base = tonumber(redis.call('HGET', KEYS[1], 'b') or 0)
local from, limit = math.max(tonumber(ARGV[1]), base + 1), tonumber(ARGV[2])
local at = from - base - 1
local got = redis.call('LRANGE', KEYS[2], at, at + limit - 1)
local links = ''
if #got > 0 then links = redis.call('GETRANGE', KEYS[3], at * 64, (at + #got) * 64 - 1) end
return { string.format('%.0f', from), links, got }
