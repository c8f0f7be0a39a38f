-- SPDX-License-Identifier: MIT
-- A filter for pandoc: makes a page of docs/, or README.md, a manual page.
--
-- The first block of code is the SYNOPSIS and what follows the DESCRIPTION. Sections keep their names. A table of two
-- columns becomes a list, since options are looked for at the margin. A link to another page becomes that page's name,
-- and all of them stand under SEE ALSO.
--
-- From the environment: MANUAL_PAGES, the list of pages; MANUAL_FILE, which of them this is; MANUAL_HELP, what
-- `cuscope --help` prints, for the page cuscope(1) and for what commands are about.

local commands, order = {}, {}
for name, text in os.getenv("MANUAL_HELP"):gmatch("\n  (%l[%w-]*)  +([^\n]+)") do
	commands[name] = text
	order[#order + 1] = name
end

local pages, page = {}, nil
for file, name, section, about in os.getenv("MANUAL_PAGES"):gmatch("([%w/.-]+%.md) +([%w-]+) +(%d)[ ]*([^\n]*)") do
	pages[file] = { name = name, section = section, about = about }
end
page = pages[os.getenv("MANUAL_FILE")]
assert(page, "the page is not in the list of pages")
if page.about == "" then
	page.about = commands[page.name:gsub("^cuscope%-", "")] or "show what a program does with its NVIDIA GPU"
end

local linked = {}

local function reference(to)
	return { pandoc.Strong(pandoc.Str(to.name)), pandoc.Str("(" .. to.section .. ")") }
end

-- "docs/gpu.md" for a link "gpu.md#limits" of a page in docs/
local function file_of(target)
	local path = target:gsub("#.*", "")
	local folder = os.getenv("MANUAL_FILE"):match("^(.*/)") or ""
	return folder .. path
end

local function names_page(text, file)
	local stem = file:match("([^/]+)%.md$")
	return text == stem or text == stem .. ".md" or text == "cuscope " .. stem or text == "docs/" .. stem .. ".md"
end

local links = {
	Image = function()
		return {}
	end,
	Link = function(link)
		local file = file_of(link.target)
		local to = pages[file]
		if to and to ~= page then
			linked[to.section .. to.name] = to
			if names_page(pandoc.utils.stringify(link), file) then
				return reference(to)
			end
		elseif link.target:match("^%w+:") then
			return { pandoc.Span(link.content), pandoc.Str(" <" .. link.target .. ">") }
		end
		return link.content
	end,
}

-- What is typed, as it is typed: troff has other signs for most of these.
local function escaped(code)
	local signs = { ["\\"] = "\\[rs]", ["-"] = "\\-", ["'"] = "\\[aq]", ["`"] = "\\[ga]", ["^"] = "\\[ha]", ["~"] = "\\[ti]" }
	return (code:gsub("[\\'`^~-]", signs):gsub("^%.", "\\&."))
end

-- pandoc would ask for a font that not every formatter has. A long name may go on in a next line.
local function code_inline(code)
	return pandoc.RawInline("man", "\\f[B]" .. escaped(code.text):gsub("[_/,]", "%0\\:") .. "\\f[R]")
end

local function code_block(block)
	local lines = {}
	for line in (block.text .. "\n"):gmatch("([^\n]*)\n") do
		lines[#lines + 1] = escaped(line)
	end
	return pandoc.RawBlock("man", ".IP\n.EX\n" .. table.concat(lines, "\n") .. "\n.EE")
end

-- A list of what stands in the first column, with the second: also where the header of a table is empty.
local function list_of(tab)
	local simple = pandoc.utils.to_simple_table(tab)
	if #simple.aligns ~= 2 then
		return tab
	end
	local items = {}
	for _, row in ipairs(simple.rows) do
		local term = #row[1] > 0 and row[1][1].content or { pandoc.Str("-") }
		items[#items + 1] = { term, { row[2] } }
	end
	return pandoc.DefinitionList(items)
end

local function heading(text)
	return pandoc.Header(1, { pandoc.Str(text) })
end

local function add(to, blocks)
	for _, block in ipairs(blocks) do
		to[#to + 1] = block
	end
end

-- Of README.md what is true of an installed program.
local left_out = { ["Try it"] = true, ["Building and installing"] = true, ["More"] = true, ["License"] = true }

local function readme(blocks)
	local kept, skipping = {}, false
	for _, block in ipairs(blocks) do
		if block.t == "Header" and block.level == 2 then
			skipping = left_out[pandoc.utils.stringify(block)]
		end
		if not skipping and not pandoc.utils.stringify(block):match("^This is what two commands print") then
			kept[#kept + 1] = block
		end
	end
	return kept
end

local function command_list()
	local items = {}
	for _, name in ipairs(order) do
		local to = pages["docs/" .. name .. ".md"]
		items[#items + 1] = { to and reference(to) or { pandoc.Str(name) }, { { pandoc.Plain(commands[name]) } } }
	end
	return { heading("COMMANDS"), pandoc.DefinitionList(items) }
end

-- What comes before the first block of code is about the command as well; a format has no synopsis.
local function body(blocks)
	local made, synopsis = {}, page.section == "1"
	if page.name == "cuscope" then
		add(made, { heading("SYNOPSIS"), pandoc.Para({ pandoc.Strong("cuscope"), pandoc.Str(" COMMAND [OPTION...]") }) })
		synopsis = false
	end
	add(made, not synopsis and { heading("DESCRIPTION") } or {})
	for _, block in ipairs(blocks) do
		if block.t == "Header" and block.level == 1 then
			goto continue
		elseif block.t == "Header" then
			block.level = block.level - 1
			block.content = block.content:walk({ Code = function(code) return pandoc.Str(code.text) end })
			if page.name == "cuscope" and not made.listed then
				made.listed = true
				add(made, command_list())
			end
			made[#made + 1] = block
		elseif block.t == "CodeBlock" and synopsis then
			synopsis = false
			add(made, { heading("SYNOPSIS"), code_block(block), heading("DESCRIPTION") })
		elseif block.t == "Para" and #block.content == 0 then
			goto continue
		else
			made[#made + 1] = block
		end
		::continue::
	end
	made.listed = nil
	return made
end

local function see_also()
	local names, content = {}, {}
	if page.name ~= "cuscope" then
		linked["1cuscope"] = pages["README.md"]
	end
	for name in pairs(linked) do
		names[#names + 1] = name
	end
	table.sort(names)
	for i, name in ipairs(names) do
		add(content, i > 1 and { pandoc.Str(","), pandoc.Space() } or {})
		add(content, reference(linked[name]))
	end
	return #content > 0 and { heading("SEE ALSO"), pandoc.Para(content) } or {}
end

function Pandoc(doc)
	local blocks = page.name == "cuscope" and readme(doc.blocks) or doc.blocks
	local made = { heading("NAME"), pandoc.Para({ pandoc.Str(page.name .. " - " .. page.about) }) }
	add(made, body(pandoc.Blocks(blocks):walk(links)))
	made = pandoc.Blocks(made):walk({ Code = code_inline, CodeBlock = code_block, Table = list_of })
	add(made, see_also())
	doc.meta.title = page.name:upper()
	doc.meta.section = page.section
	return pandoc.Pandoc(made, doc.meta)
end
