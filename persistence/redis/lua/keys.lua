-- What all scripts share. ARGV[1] is the prefix of all keys, ARGV[2] the job, as msgpack, and what follows are values that
-- it names by their place.
-- Nothing is undone if a script fails half way; so each looks at all that it needs before it changes anything.

local PREFIX = ARGV[1] .. ':'
local VALUES = 2 -- arguments before them
local job = cmsgpack.unpack(ARGV[2])

-- A name as part of a key: no colon, brace or star is left in it.
local function quoted(name)
    return (string.gsub(name, '[^A-Za-z0-9_.~-]', function(character)
        return string.format('%%%02X', string.byte(character))
    end))
end

-- Texts as two: how long each is, -1 if it is nothing, and all of them one after the other. Whoever reads many short
-- answers one by one takes much longer than the server.
local function packed(texts)
    local sizes = {}
    for place, text in ipairs(texts) do
        sizes[place] = text and #text or -1
        if not text then texts[place] = '' end
    end
    return cmsgpack.pack(sizes), table.concat(texts)
end

local function append(list, ...)
    for _, text in ipairs({...}) do list[#list + 1] = text end
end
