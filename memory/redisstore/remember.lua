-- Appends a note stamped with the server's time. ARGV: the note, how many are kept. 0 where there is no room.
if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
local t = redis.call('TIME')
return redis.call('RPUSH', KEYS[1], t[1] .. string.sub('000000', #t[2] + 1) .. t[2] .. ARGV[1])
