-- SPDX-License-Identifier: ISC
-- A page of the site: links between documents become links between pages, headings and the entries
-- of lists of settings have anchors that stay.

local section = ""

-- The title of each document, by the name of its file.
local titles = {}
for line in io.lines(pandoc.path.join({pandoc.path.directory(PANDOC_SCRIPT_FILE), "pages.list"})) do
	local name, title = line:match("^(%S+%.md) (.+)$")
	if name then
		titles[pandoc.path.filename(name)] = title
	end
end

local function page_of(target)
	local path, anchor = target:match("^([^#]*)(.*)$")
	local name = path:match("([^/]+)$")
	if path == "" or target:match("^%a+:") or name:match("%.png$") then
		return target
	elseif name == "README.md" then
		return "index.html" .. anchor
	elseif name == "NEWS.md" then
		return "news.html" .. anchor
	elseif name:match("%.md$") then
		return name:gsub("%.md$", ".html") .. anchor
	elseif name == "COPYRIGHT" then
		return "COPYRIGHT.txt"
	end
	error("a link to " .. target .. ", which is no page")
end

-- A link with the name of a file has the title of its page instead.
local function link(element)
	local title = titles[pandoc.utils.stringify(element.content):match("[^/]*$")]
	if title then
		element.content = pandoc.Inlines({pandoc.Str(title)})
	end
	element.target = page_of(element.target)
	return element
end

local function header(element)
	if element.level <= 2 then
		section = pandoc.utils.stringify(element.content):lower()
	end
	if element.identifier ~= "" and element.level > 1 then
		local label = "Link to " .. pandoc.utils.stringify(element.content)
		local attributes = pandoc.Attr("", {"anchor"}, {["aria-label"] = label})
		element.content:insert(pandoc.Link("", "#" .. element.identifier, "", attributes))
	end
	return element
end

-- A setting is #pool_mode, a key of an entry #databases.pool_mode, an option #option-daemon, a signal
-- or another word #sighup. Headings have their words; a setting of the same name is #setting-peers.
local used = {}

local function heading(element)
	used[element.identifier] = true
end

local function anchor_of(term)
	local name = pandoc.utils.stringify(term):match("^[^,=:]*"):gsub("%s+$", "")
	local long = pandoc.utils.stringify(term):match("%-%-([%w-]+)")
	if long then
		name = "option-" .. long
	elseif section == "databases" or section == "users" or section == "peers" then
		name = section .. "." .. name
	end
	name = name:lower():gsub("[^%w._-]+", "-"):gsub("^-+", ""):gsub("-+$", "")
	if used[name] then
		name = "setting-" .. name
	end
	if name == "" or used[name] then
		return nil
	end
	used[name] = true
	return name
end

local function definitions(element)
	for _, item in ipairs(element.content) do
		local name = anchor_of(item[1])
		if name then
			local link_here = pandoc.Link(item[1], "#" .. name, "", pandoc.Attr(name, {"term"}))
			item[1] = pandoc.Inlines({link_here})
		end
	end
	return element
end

-- A wide table scrolls by itself; its columns are as wide as they need to be.
local function wide_table(element)
	for _, column in ipairs(element.colspecs) do
		column[2] = nil
	end
	return pandoc.Div({element}, pandoc.Attr("", {"table"}))
end

return {
	{Link = link, Header = heading},
	{
		traverse = "topdown",
		Header = header,
		DefinitionList = definitions,
		Table = function(element)
			return wide_table(element), false
		end,
	},
}
