-- Return some of the threads: where to go on, '0' at the end, and for each its name as it stands in keys and the id and
-- namespace of its newest checkpoint. A thread may be told of twice.

local cursor, looked = job[1], job[2]
local start = PREFIX .. 'order:'
local pattern = string.gsub(start, '[%[%]*?\\]', '\\%0') .. '*'
local found = redis.call('SCAN', cursor, 'MATCH', pattern, 'COUNT', looked)
local threads = {}
for _, key in ipairs(found[2]) do
    local newest = redis.call('ZREVRANGE', key, 0, 0)
    if newest[1] then append(threads, string.sub(key, #start + 1), newest[1]) end
end
return {found[1], threads}
