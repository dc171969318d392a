-- Return for each named thread: how many namespaces and checkpoints it has, the newest checkpoint of its first namespace
-- (namespace, id, record), with ``weighs`` the bytes that it takes on the server, and what was written against that
-- checkpoint. Nothing for one that is not there.

local threads, weighs = job[1], job[2]
local told = {}
for number, thread in ipairs(threads) do
    local keys = keys_of(thread)
    local count = redis.call('ZCARD', keys.spaces)
    local spaces, first = 0, nil
    local found = redis.call('ZRANGEBYLEX', keys.spaces, '-', '+', 'LIMIT', 0, 1)
    while found[1] do
        local ns = cut(found[1])
        first, spaces = first or ns, spaces + 1
        found = redis.call('ZRANGEBYLEX', keys.spaces, '(' .. ns .. '\1', '+', 'LIMIT', 0, 1)
    end
    told[number] = {}
    if first then
        local newest = redis.call('ZREVRANGEBYLEX', keys.spaces, '(' .. first .. '\1', '[' .. first .. '\0', 'LIMIT', 0, 1)
        local _, id = cut(newest[1])
        local record = redis.call('HGET', keys.checkpoints, newest[1]) or ''
        local bytes = 0
        if weighs then
            for_each_key(keys, function(key) bytes = bytes + (redis.call('MEMORY', 'USAGE', key, 'SAMPLES', 0) or 0) end)
        end
        local head = first .. '\0' .. id
        local written = redis.call('ZRANGEBYLEX', keys.tasks, '[' .. head .. '\0', '(' .. head .. '\1')
        told[number] = {spaces, count, first, id, record, bytes, written}
    end
end
return told
