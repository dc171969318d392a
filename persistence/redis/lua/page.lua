-- Return checkpoints between two bounds, newest first, or those that are named; with 'all' that they need, with their
-- 'writes', as they are ('record'), or their 'metadata' alone: whether there may be more, the member looked at last, the checkpoints, their writes, their blobs.

local ttl, kind, name, high, low, limit, wanted, depth = job[1], job[2], job[3], job[4], job[5], job[6], job[7], job[8]
local named = job[9]
local MOST = 4096 -- members looked at before others get their turn

local function place(member)
    if kind == 'index' then
        local id, thread, ns = entry(member)
        return thread, ns, id
    end
    local first, second = cut(member)
    if kind == 'spaces' then return name, first, second end
    return name, second, first
end

local checkpoints, writes, blobs, seen, touched, count = {}, {}, {}, {}, {}, 0

local function gather(thread, ns, id, keys, record)
    local first = ns .. '\0' .. id
    local fields = redis.call('ZRANGEBYLEX', keys.tasks, '[' .. first .. '\0', '(' .. first .. '\1')
    for _, field in ipairs(fields) do
        local value = redis.call('HGET', keys.writes, field)
        if value then append(writes, thread, field, value) end
    end
    if depth ~= 'all' then return end
    for _, blob in ipairs(rests_of(record) or {}) do
        local field = ns .. '\0' .. blob
        local mark = keys.blobs .. '\0' .. field
        local value = not seen[mark] and redis.call('HGET', keys.blobs, field)
        seen[mark] = true
        if value then append(blobs, thread, field, value) end
    end
end

local function look(thread, ns, id, member)
    if wanted and ns ~= wanted then return end
    local keys = keys_of(thread)
    local record = redis.call('HGET', keys.checkpoints, ns .. '\0' .. id)
    if not record then
        -- Its thread has expired, or another program meddled with it.
        if member and kind == 'index' and ttl > 0 then redis.call('ZREM', INDEX, member) end
        return
    end
    count = count + 1
    if depth == 'all' or depth == 'writes' then
        gather(thread, ns, id, keys, record)
    elseif depth == 'metadata' then
        local _, metadata = facts_of(record)
        record = metadata or ''
    end
    append(checkpoints, thread, ns, id, record)
    touched[thread] = keys
end

for _, each in ipairs(named) do look(each[1], each[2], each[3], nil) end

local last, more, looked = '', #named == 0, 0
local source = more and (kind == 'index' and INDEX or keys_of(name)[kind])
while more and count < limit and looked < MOST do
    local members = redis.call('ZREVRANGEBYLEX', source, high, low, 'LIMIT', 0, limit - count)
    more = #members == limit - count
    for _, member in ipairs(members) do
        local thread, ns, id = place(member)
        look(thread, ns, id, member)
        last = member
    end
    looked = looked + #members
    high = '(' .. last
end

if ttl > 0 and depth == 'all' then
    local now = milliseconds()
    for _, keys in pairs(touched) do
        local left = redis.call('PTTL', keys.checkpoints)
        if left >= 0 and left < ttl then
            set_lifetime(keys, ttl, now)
            prolong_list(INDEX, ttl, now, false)
            prolong_list(RUNS, ttl, now, false)
        end
    end
end
local sizes = {#checkpoints, #writes}
for _, list in ipairs({writes, blobs}) do
    for _, text in ipairs(list) do checkpoints[#checkpoints + 1] = text end
end
return {more and 1 or 0, last, sizes[1], sizes[2], packed(checkpoints)}
