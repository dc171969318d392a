-- Return the threads that were active last, walking back from a member of the index: the member looked at last, or ''
-- if there is no more, and the names of the threads that are none of the known ones.

local high, limit, known = job[1], job[2], job[3]
local MOST = 16384 -- members looked at before others get their turn
local PART = 256 -- members fetched at once

local seen, threads, looked = {}, {}, 0
for _, thread in ipairs(known) do seen[thread] = true end
while #threads < limit and looked < MOST do
    local members = redis.call('ZREVRANGEBYLEX', INDEX, high, '-', 'LIMIT', 0, PART)
    for _, member in ipairs(members) do
        local _, thread = entry(member)
        if not seen[thread] then
            seen[thread] = true
            -- One that has expired may be listed yet.
            if redis.call('EXISTS', keys_of(thread).checkpoints) == 1 then threads[#threads + 1] = thread end
            if #threads == limit then break end
        end
    end
    if #members < PART then return {'', threads} end
    looked, high = looked + PART, '(' .. members[PART]
end
return {string.sub(high, 2), threads}
