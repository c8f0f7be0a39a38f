// SPDX-License-Identifier: MIT
#include "stack/lines/debug_info.h"

#ifdef CUSCOPE_LIBDW

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <elfutils/version.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/array.h"
#include "base/map.h"
#include "base/order.h"
#include "base/vec.h"
#include "base/xalloc.h"

#define SIZELESS_REACH 4096 /* of functions of assembly code: a guess */
#define DEPTH_MAX      128  /* of scopes in one another */
#define NESTED_MAX     16   /* stretches that begin later and end sooner than the one looked for */

/* A stretch of addresses as linked, and what it is of. */
struct range {
	uint64_t begin, end;
	Dwarf_Off die;
};

struct ranges {
	struct range *at;
	size_t n;
};

/* A namespace, a class or a function, which others are in. */
struct scope {
	uint32_t outer; /* and one; 0: there is none */
	Dwarf_Off die;
};

/* Where a function is named; in the order of `die`. */
struct named {
	Dwarf_Off die;
	uint32_t scope;
};

/* A unit whose functions were listed. */
struct unit {
	Dwarf_Off die;
	struct ranges functions; /* with code */
	struct scope *scopes;
	struct named *named;
	size_t n_scopes, n_named;
	UT_hash_handle hh;
};

struct debug_info {
	Dwfl *dwfl;
	Dwfl_Module *module;
	Dwarf *dwarf, *alt;
	Dwarf_Addr bias, dwarf_bias; /* of the module's addresses to those of the file, of dwarf */
	struct debug_info_files files;
	struct ranges units;
	struct ranges symbols; /* `die` is the number of a symbol */
	bool symbols_listed;
	struct unit *listed;
	struct buf names[LINES_PARTS_MAX]; /* of the answer, where they are put together */
};

const char *debug_info_version(void)
{
	return dwfl_version(NULL);
}

/* ---- ranges -------------------------------------------------------------------------------- */

static void add_range(struct ranges *ranges, uint64_t begin, uint64_t end, Dwarf_Off die)
{
	if (begin >= end)
		return;
	ranges->at = vec_room(ranges->at, ranges->n, sizeof(*ranges->at));
	ranges->at[ranges->n++] = (struct range){ begin, end, die };
}

static void add_ranges(struct ranges *ranges, Dwarf_Die *die)
{
	Dwarf_Addr base, begin, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &begin, &end)) > 0)
		add_range(ranges, begin, end, dwarf_dieoffset(die));
}

ORDER_BY(by_begin, struct range, UP(begin));

static void sort_ranges(struct ranges *ranges)
{
	if (ranges->n)
		qsort(ranges->at, ranges->n, sizeof(*ranges->at), by_begin);
}

static const struct range *find_range(const struct ranges *ranges, uint64_t address)
{
	size_t low = ARRAY_BEFORE(ranges->n, i, ranges->at[i].begin <= address);

	for (size_t back = 1; back <= NESTED_MAX && back <= low; back++)
		if (address < ranges->at[low - back].end)
			return &ranges->at[low - back];
	return NULL;
}

/* ---- the files ----------------------------------------------------------------------------- */

static uint32_t crc_of(int fd)
{
	struct stat st;
	uint32_t crc;
	void *all;

	if (fstat(fd, &st) || st.st_size <= 0)
		return 0;
	all = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (all == MAP_FAILED)
		return 0;
	crc = (uint32_t)crc32_z(0, all, (size_t)st.st_size);
	munmap(all, (size_t)st.st_size);
	return crc;
}

/* Whether the other file is of this one: by the build ids, or by its sum where it has none. */
static bool belongs(Elf *main, int fd, uint32_t crc)
{
	const void *id, *other_id;
	ssize_t bytes = dwelf_elf_gnu_build_id(main, &id), other_bytes;
	bool same = false;
	Elf *other;

	if (bytes <= 0)
		return crc_of(fd) == crc;
	other = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	other_bytes = other ? dwelf_elf_gnu_build_id(other, &other_id) : 0;
	if (other_bytes > 0)
		same = other_bytes == bytes && !memcmp(id, other_id, (size_t)bytes);
	else
		same = other && crc_of(fd) == crc;
	elf_end(other);
	return same;
}

static int find_debug(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                      const char *file, const char *link, GElf_Word crc, char **found)
{
	struct debug_info *info = *data;
	int fd = info->files.debug;
	Dwarf_Addr bias;

	info->files.debug = -1;
	if (fd < 0 || belongs(dwfl_module_getelf(module, &bias), fd, info->files.crc))
		return fd;
	close(fd);
	return -1;
}

/* Nothing is looked for by name: the files are those that there are. */
static int find_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                    char **file, Elf **elf)
{
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debug,
	.section_address = dwfl_offline_section_address,
};

static void list_units(struct debug_info *info)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;

	while (!dwarf_get_units(info->dwarf, unit, &unit, NULL, NULL, &die, NULL))
		add_ranges(&info->units, &die);
	sort_ranges(&info->units);
}

static void open_alt(struct debug_info *info)
{
	if (info->files.alt < 0)
		return;
	info->alt = dwarf_begin(info->files.alt, DWARF_C_READ);
	if (info->alt)
		dwarf_setalt(info->dwarf, info->alt);
}

struct debug_info *debug_info_open(const struct debug_info_files *files)
{
	struct debug_info *info = xcalloc(1, sizeof(*info));
	void **data;

	info->files = *files;
	info->dwfl = dwfl_begin(&callbacks);
	if (!info->dwfl)
		return NULL;
	dwfl_report_begin(info->dwfl);
	info->module = dwfl_report_elf(info->dwfl, "main", "main", files->main, 0, false);
	dwfl_report_end(info->dwfl, NULL, NULL);
	if (!info->module || !dwfl_module_getelf(info->module, &info->bias))
		return NULL;
	dwfl_module_info(info->module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
	*data = info;
	info->dwarf = dwfl_module_getdwarf(info->module, &info->dwarf_bias);
	if (info->dwarf) {
		open_alt(info);
		list_units(info);
	}
	return info;
}

/* ---- looking up ---------------------------------------------------------------------------- */

/* The address, as the file has it, of an offset of it: code is in an executable segment. */
static bool address_of(const struct debug_info *info, uint64_t offset, uint64_t *address)
{
	Dwarf_Addr bias;
	Elf *elf = dwfl_module_getelf(info->module, &bias);
	GElf_Phdr segment;
	size_t n;

	if (!elf || elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n && i < INT_MAX; i++) {
		if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_LOAD ||
		    !(segment.p_flags & PF_X) || offset < segment.p_offset ||
		    offset - segment.p_offset >= segment.p_filesz)
			continue;
		*address = offset - segment.p_offset + segment.p_vaddr;
		return true;
	}
	return false;
}

static uint32_t add_scope(struct unit *unit, uint32_t outer, Dwarf_Die *die)
{
	unit->scopes = vec_room(unit->scopes, unit->n_scopes, sizeof(*unit->scopes));
	unit->scopes[unit->n_scopes++] = (struct scope){ outer, dwarf_dieoffset(die) };
	return (uint32_t)unit->n_scopes;
}

static void add_named(struct unit *unit, uint32_t scope, Dwarf_Die *die)
{
	unit->named = vec_room(unit->named, unit->n_named, sizeof(*unit->named));
	unit->named[unit->n_named++] = (struct named){ dwarf_dieoffset(die), scope };
}

/* All functions; those of namespaces and classes have their code elsewhere, often. */
static void list_functions(struct unit *unit, Dwarf_Die *of, uint32_t scope, unsigned depth)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(of, &die))
		return;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			add_ranges(&unit->functions, &die);
			if (scope)
				add_named(unit, scope, &die);
			if (dwarf_haschildren(&die)) /* classes, and functions of Ada and Rust */
				list_functions(unit, &die, add_scope(unit, scope, &die), depth + 1);
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
			if (dwarf_haschildren(&die))
				list_functions(unit, &die, add_scope(unit, scope, &die), depth + 1);
			break;
		case DW_TAG_lexical_block:
			list_functions(unit, &die, scope, depth + 1);
			break;
		}
	} while (!dwarf_siblingof(&die, &die));
}

static const struct unit *unit_of(struct debug_info *info, Dwarf_Die *die)
{
	Dwarf_Off off = dwarf_dieoffset(die);
	struct unit *unit;

	unit = MAP_FIND(info->listed, &off);
	if (unit)
		return unit;
	unit = MAP_ADD(info->listed, die, &off);
	list_functions(unit, die, 0, 0);
	sort_ranges(&unit->functions);
	return unit;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Where it is named first: in its namespace or class. */
static void find_origin(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;

	for (int steps = 0; steps < 8; steps++) {
		if (!dwarf_attr(die, DW_AT_abstract_origin, &attribute) &&
		    !dwarf_attr(die, DW_AT_specification, &attribute))
			return;
		if (!dwarf_formref_die(&attribute, die))
			return;
	}
}

static uint32_t scope_of(const struct unit *unit, Dwarf_Off die)
{
	size_t low = 0, high = unit->n_named;

	while (low < high) { /* children come after their parents, and siblings in order */
		size_t middle = low + (high - low) / 2;

		if (unit->named[middle].die <= die)
			low = middle + 1;
		else
			high = middle;
	}
	return low && unit->named[low - 1].die == die ? unit->named[low - 1].scope : 0;
}

/* "std::vector<int>::": the outermost first. */
static void add_scopes(struct debug_info *info, const struct unit *unit, uint32_t scope,
                       struct buf *name)
{
	uint32_t path[DEPTH_MAX], n = 0;

	for (; scope && n < DEPTH_MAX; scope = unit->scopes[scope - 1].outer)
		path[n++] = scope;
	while (n--) {
		Dwarf_Die die;
		const char *text = NULL;

		if (dwarf_offdie(info->dwarf, unit->scopes[path[n] - 1].die, &die))
			text = dwarf_diename(&die);
		if (!text && dwarf_tag(&die) == DW_TAG_namespace)
			text = "(anonymous namespace)";
		if (text && name->len + strlen(text) < LINES_NAME_MAX)
			buf_printf(name, "%s::", text);
	}
}

/* As it is written where it has no linked name: one that was inlined everywhere has none. */
static const char *whole_name(struct debug_info *info, Dwarf_Die *die, const char *plain,
                              struct buf *name)
{
	Dwarf_Die origin = *die, cu;
	const struct unit *unit;

	find_origin(&origin);
	if (dwarf_cu_getdwarf(origin.cu) != info->dwarf || !dwarf_diecu(&origin, &cu, NULL, NULL))
		return plain;
	unit = unit_of(info, &cu);
	buf_reset(name);
	add_scopes(info, unit, scope_of(unit, dwarf_dieoffset(&origin)), name);
	buf_puts(name, plain);
	return name->data;
}

static const char *name_of(struct debug_info *info, Dwarf_Die *die, struct buf *name)
{
	Dwarf_Attribute attribute;
	const char *text = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		text = dwarf_formstring(&attribute);
	if (text && *text)
		return text;
	text = dwarf_diename(die);
	return text && *text ? whole_name(info, die, text, name) : NULL;
}

/* ---- lines and inlined functions ------------------------------------------------------------- */

/* The function that was inlined at the address, in `in` or in a block of it. */
static bool find_inlined(Dwarf_Die *in, uint64_t address, Dwarf_Die *found, unsigned depth)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(in, &die))
		return false;
	do {
		int tag = dwarf_tag(&die);

		if ((tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block) ||
		    dwarf_haspc(&die, address) != 1)
			continue;
		if (tag == DW_TAG_lexical_block)
			return find_inlined(&die, address, found, depth + 1);
		*found = die;
		return true;
	} while (!dwarf_siblingof(&die, &die));
	return false;
}

static uint32_t number_of(Dwarf_Die *die, unsigned what)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr_integrate(die, what, &attribute) || dwarf_formudata(&attribute, &value) ||
	    value > INT32_MAX)
		return 0;
	return (uint32_t)value;
}

/* Where the call was that was inlined: the place of the function around it. */
static void place_of_call(Dwarf_Die *unit, Dwarf_Die *inlined, struct lines_part *part)
{
	Dwarf_Files *files;
	uint32_t file = number_of(inlined, DW_AT_call_file);
	size_t n;

	part->line = number_of(inlined, DW_AT_call_line);
	part->file = NULL;
	if (!dwarf_getsrcfiles(unit, &files, &n) && file < n)
		part->file = dwarf_filesrc(files, file, NULL, NULL);
}

/* Where a function begins, if that is in the file that its place is in. */
static uint32_t first_line_of(Dwarf_Die *die, const char *file)
{
	const char *declared = dwarf_decl_file(die);
	int line = 0;

	if (!declared || !file || strcmp(declared, file) || dwarf_decl_line(die, &line))
		return 0;
	return line > 0 ? (uint32_t)line : 0;
}

static void place_of(Dwarf_Die *unit, uint64_t address, struct lines_part *part)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, address);
	int number = 0;

	if (!line)
		return;
	part->file = dwarf_linesrc(line, NULL, NULL);
	if (!dwarf_lineno(line, &number) && number > 0)
		part->line = (uint32_t)number;
}

/* From the function inwards; `chain` has the outermost first. */
static size_t chain_of(Dwarf_Die *function, uint64_t address, Dwarf_Die *chain)
{
	size_t n = 1;

	chain[0] = *function;
	while (n < LINES_PARTS_MAX && find_inlined(&chain[n - 1], address, &chain[n], 0))
		n++;
	return n;
}

static void find_parts(struct debug_info *info, uint64_t address, struct lines_answer *answer)
{
	const struct range *range = find_range(&info->units, address);
	Dwarf_Die unit, function, chain[LINES_PARTS_MAX];
	size_t n;

	if (!range || !dwarf_offdie(info->dwarf, range->die, &unit))
		return;
	answer->n = 1;
	place_of(&unit, address, &answer->parts[0]);
	range = find_range(&unit_of(info, &unit)->functions, address);
	if (!range || !dwarf_offdie(info->dwarf, range->die, &function))
		return;
	n = chain_of(&function, address, chain);
	answer->n = n;
	for (size_t i = 0; i < n; i++) {
		struct lines_part *part = &answer->parts[i];
		Dwarf_Die *die = &chain[n - 1 - i];

		if (i)
			place_of_call(&unit, &chain[n - i], part);
		part->function = name_of(info, die, &info->names[i]);
		part->first_line = first_line_of(die, part->file);
	}
}

/* Of the file, its debug file, and what is compressed in it; by themselves they are in no order. */
static void list_symbols(struct debug_info *info)
{
	int n = dwfl_module_getsymtab(info->module);

	for (int i = 1; i < n; i++) {
		GElf_Addr begin;
		GElf_Sym symbol;
		int type;

		if (!dwfl_module_getsym_info(info->module, i, &symbol, &begin, NULL, NULL, NULL))
			continue;
		type = GELF_ST_TYPE(symbol.st_info);
		if (symbol.st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_GNU_IFUNC))
			add_range(&info->symbols, begin,
			          begin + (symbol.st_size ? symbol.st_size : SIZELESS_REACH),
			          (Dwarf_Off)i);
	}
	sort_ranges(&info->symbols);
	info->symbols_listed = true;
}

static const char *symbol_at(struct debug_info *info, uint64_t address)
{
	const struct range *range;
	GElf_Addr begin;
	GElf_Sym symbol;

	if (!info->symbols_listed)
		list_symbols(info);
	range = find_range(&info->symbols, address);
	return range ? dwfl_module_getsym_info(info->module, (int)range->die, &symbol, &begin, NULL,
	                                       NULL, NULL)
	             : NULL;
}

void debug_info_find(struct debug_info *info, uint64_t offset, bool named,
                     struct lines_answer *answer)
{
	uint64_t address;

	memset(answer, 0, sizeof(*answer));
	answer->status = LINES_NOTHING;
	if (!address_of(info, offset, &address))
		return;
	if (info->dwarf)
		find_parts(info, address + info->bias - info->dwarf_bias, answer);
	if (!answer->n)
		answer->n = 1;
	if (!named && !answer->parts[answer->n - 1].function)
		answer->parts[answer->n - 1].function = symbol_at(info, address + info->bias);
	if (answer->n > 1 || answer->parts[0].function || answer->parts[0].line)
		answer->status = LINES_OK;
	else
		answer->n = 0;
}

#else

#include <string.h>
#include <unistd.h>

const char *debug_info_version(void)
{
	return NULL;
}

struct debug_info *debug_info_open(const struct debug_info_files *files)
{
	return NULL;
}

void debug_info_find(struct debug_info *info, uint64_t offset, bool named,
                     struct lines_answer *answer)
{
	memset(answer, 0, sizeof(*answer));
	answer->status = LINES_NOTHING;
}

#endif
