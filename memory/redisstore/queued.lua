-- A page of a queue in order of (due, member). ARGV: the member and due time to go on after, both '' from the start; "1"
-- for due ones only; the size of the page.
local key, member, due, only, limit = KEYS[1], ARGV[1], ARGV[2], ARGV[3] == '1', tonumber(ARGV[4])
local t = redis.call('TIME')
local now = tonumber(t[1] .. string.sub('000000', #t[2] + 1) .. t[2])
local from = 0
if due ~= '' then
  local d = tonumber(due)
  if tonumber(redis.call('ZSCORE', key, member) or 'nan') == d then
    from = redis.call('ZRANK', key, member) + 1
  else -- it is gone, or due at another time: count what comes before where it would stand
    from = redis.call('ZCOUNT', key, '-inf', '(' .. due)
    local ties = redis.call('ZCOUNT', key, due, due)
    local lo, hi = 0, ties
    while lo < hi do
      local mid = math.floor((lo + hi) / 2)
      if redis.call('ZRANGE', key, from + mid, from + mid)[1] <= member then lo = mid + 1 else hi = mid end
    end
    from = from + lo
  end
end
local got, out = redis.call('ZRANGE', key, from, from + limit - 1, 'WITHSCORES'), {}
for i = 1, #got, 2 do
  if only and tonumber(got[i + 1]) > now then break end
  out[#out + 1] = got[i]
  out[#out + 1] = string.format('%.0f', tonumber(got[i + 1]))
end
return out
