// SPDX-License-Identifier: MIT
#include "probe/own_functions.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/order.h"
#include "base/parse.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "cuda/api.h"
#include "cuda/kernel_name.h"
#include "probe/elf_image.h"
#include "probe/selection.h"
#include "probe/placement.h"
#include "probe/plain_name.h"

/* The markers of an ELF file (USDT): notes that say where they are and what their arguments are. */

#define NOTES_MAX          (4u << 20) /* bytes of all notes of a file; libpython has 3 KiB */
#define NOTE_STAPSDT       3
#define MARKERS_NAME_BYTES 512 /* of provider and name together; longer ones are not hooked */

struct marker {
	uint64_t address, base, counter;
	const char *provider, *name, *arguments;
};

/* The text that begins at `*at`, behind which it goes on; NULL where it has no end. */
static const char *take_text(const char **at, const char *end)
{
	const char *text = *at, *nul = memchr(text, 0, (size_t)(end - text));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return text;
}

static bool read_marker(const char *from, size_t bytes, struct marker *marker)
{
	const char *end = from + bytes;
	uint64_t places[3];

	if (bytes < sizeof(places))
		return false;
	memcpy(places, from, sizeof(places));
	from += sizeof(places);
	*marker = (struct marker){ .address = places[0], .base = places[1], .counter = places[2] };
	marker->provider = take_text(&from, end);
	marker->name = marker->provider ? take_text(&from, end) : NULL;
	marker->arguments = marker->name ? take_text(&from, end) : NULL;
	return marker->arguments != NULL;
}

static void add_marker(const struct elf_image *image, const struct marker *marker, uint64_t moved,
                       size_t number, struct own_functions *into)
{
	uint64_t offset = elf_image_offset(image, marker->address + moved, 1, true);
	struct own_function *function;

	if (!offset || into->matches[number] >= HOOK_MATCHES_TOP ||
	    strlen(marker->provider) + strlen(marker->name) >= MARKERS_NAME_BYTES)
		return;
	into->matches[number]++;
	into->list = vec_room(into->list, into->n, sizeof(*into->list));
	function = &into->list[into->n++];
	*function = (struct own_function){
		.name = xasprintf("%s:%s", marker->provider, marker->name),
		.spec = number,
		.address = marker->address + moved,
		.offset = offset,
		.counter = marker->counter
		                   ? elf_image_offset(image, marker->counter + moved, 1, false)
		                   : 0,
		.arguments = xstrdup(marker->arguments),
	};
}

/* `base` is where the section .stapsdt.base lies; a tool that moved all since wrote that anew. */
static void read_notes(const struct elf_image *image, const char *at, size_t bytes, uint64_t base,
                       const struct hook_spec *spec, size_t number, struct own_functions *into)
{
	struct elf_note note;
	struct marker marker;

	while (elf_note_next(&at, &bytes, &note)) {
		if (note.type == NOTE_STAPSDT && elf_note_is_of(&note, "stapsdt") &&
		    read_marker(note.content, note.bytes, &marker) &&
		    !fnmatch(spec->provider, marker.provider, 0) &&
		    !fnmatch(spec->glob, marker.name, 0))
			add_marker(image, &marker, base && marker.base ? base - marker.base : 0,
			           number, into);
	}
}

/* Adds those that the hook names, whose number in its list is `number`. Notes that make no sense
 * are passed over. */
static void own_markers_read(const struct elf_image *image, const struct hook_spec *spec,
                             size_t number, struct own_functions *into)
{
	Elf64_Shdr base, notes;
	char *data;

	if (!elf_image_section(image, ".note.stapsdt", &notes) || !notes.sh_size ||
	    notes.sh_size > NOTES_MAX || notes.sh_size > image->bytes)
		return;
	elf_image_section(image, ".stapsdt.base", &base);
	data = xmalloc(notes.sh_size);
	if (elf_image_read(image, notes.sh_offset, data, notes.sh_size))
		read_notes(image, data, notes.sh_size, base.sh_addr, spec, number, into);
	free(data);
}

#define STRINGS_MAX (256u << 20) /* of one symbol table, as of CUDA's modules */
#define NAME_BYTES  512          /* longer names are not hooked: C++ has some of 8 KiB */
#define SHOWN_BYTES 256          /* of a C++ name; longer ones are shown as the linker has them */
#define NEAR_MAX    65536        /* names that are compared with one that does not exist */
#define GLOB_BEGINS "*?[\\"
#define CODE_WINDOW 4096 /* of a function: see placement.h */
#define TIME_STEP   1024 /* comparisons between two looks at the time */

size_t own_functions_limit(const struct hook_list *hooks)
{
	return hooks->matches ? hooks->matches : HOOK_MATCHES;
}

/* ---- which files --------------------------------------------------------------------------- */

/* "libx.so" and "libx.so.1.2.3". */
static bool is_version_of(const char *module, const char *name)
{
	size_t len = strlen(module);

	return !strncmp(name, module, len) && name[len] == '.' &&
	       name[len + 1 + strspn(name + len + 1, "0123456789.")] == '\0';
}

bool own_functions_is_module(const struct hook_spec *spec, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (spec_is_kernel(spec))
		return false;
	if (strchr(spec->module, '/'))
		return !fnmatch(spec->module, path, FNM_PATHNAME) ||
		       (spec->real_module && !fnmatch(spec->real_module, path, FNM_PATHNAME));
	return !fnmatch(spec->module, name, 0) || is_version_of(spec->module, name);
}

bool own_functions_wanted(const struct hook_list *hooks, const char *path)
{
	for (size_t i = 0; hooks && i < hooks->n; i++) {
		if (own_functions_is_module(hooks->spec[i], path))
			return true;
	}
	return false;
}

char *own_function_shown(const char *symbol, uint64_t person)
{
	char *plain, *shown;

	if (strncmp(symbol, "_Z", 2))
		return xstrdup(symbol);
	plain = plain_kernel_name(symbol, person);
	shown = kernel_name_qualified(plain);
	free(plain);
	if (*shown && strlen(shown) < SHOWN_BYTES)
		return shown;
	free(shown);
	return xstrdup(symbol);
}

/* ---- which functions ----------------------------------------------------------------------- */

struct own_functions_search {
	const struct elf_image *image;
	const struct hook_list *hooks;
	const char *path;
	struct own_functions *into;
	bool *wanted;  /* of each hook */
	size_t *plain; /* of each: letters of its glob before the first that stands for others */
	char *strings;
	uint64_t strings_bytes;
	size_t compared;
	uint64_t until_ns; /* of the thread's own time */
	size_t steps;      /* since that was looked at */
};

/* The thread's own: a machine that is busy with others does not make a file a large one. */
static bool is_late(struct own_functions_search *search, size_t steps)
{
	search->steps += steps;
	if (search->steps < TIME_STEP)
		return false;
	search->steps = 0;
	return clock_of_ns(CLOCK_THREAD_CPUTIME_ID) >= search->until_ns;
}

static bool is_glob(const struct own_functions_search *search, size_t spec)
{
	return search->hooks->spec[spec]->glob[search->plain[spec]] != '\0';
}

static bool matches(const struct own_functions_search *search, size_t spec, const char *name)
{
	const char *glob = search->hooks->spec[spec]->glob;
	size_t plain = search->plain[spec];

	if (!is_glob(search, spec))
		return glob[0] == name[0] && !strcmp(glob, name);
	/* most names differ before that, and a library can have a million */
	if (strncmp(glob, name, plain))
		return false;
	return !fnmatch(glob, name, 0);
}

/*
 * "f.cold", "f.cold.9": what a compiler has moved out of a function. It is jumped to, so there is
 * no return address where a hook of a return would put its own.
 */
static bool is_part(const char *name)
{
	const char *cold = strstr(name, ".cold");

	return cold && (cold[5] == '\0' || cold[5] == '.');
}

static void add_function(struct own_functions_search *search, size_t spec, const char *name,
                         const Elf64_Sym *symbol)
{
	struct own_functions *into = search->into;
	uint64_t offset = elf_image_offset(search->image, symbol->st_value, 1, true);
	struct own_function *function;

	if (!offset)
		return;
	/* beyond the limit they are only counted: none of them will be hooked */
	if (into->matches[spec]++ >= 2 * own_functions_limit(search->hooks))
		return;
	into->list = vec_room(into->list, into->n, sizeof(*into->list));
	function = &into->list[into->n++];
	*function = (struct own_function){
		.name = xstrdup(name),
		.spec = spec,
		.address = symbol->st_value,
		.offset = offset,
		.size = symbol->st_size,
	};
}

/* For "did you mean": of names that are looked at anyway, as many as cost little. */
static void compare_near(struct own_functions_search *search, size_t spec, const char *name)
{
	const char *both[2] = { name, search->into->near[spec] }, *nearer;

	if (is_glob(search, spec) || search->compared++ > NEAR_MAX)
		return;
	nearer = suggest(search->hooks->spec[spec]->glob, both, 2);
	if (nearer != name)
		return;
	free(search->into->near[spec]);
	search->into->near[spec] = xstrdup(name);
}

static int look_at_symbol(const Elf64_Sym *symbol, void *data)
{
	struct own_functions_search *search = data;
	char name[NAME_BYTES];
	size_t len, room;

	if (is_late(search, search->hooks->n))
		return -ETIME;
	if (symbol->st_name >= search->strings_bytes)
		return 0;
	room = search->strings_bytes - symbol->st_name;
	len = strnlen(search->strings + symbol->st_name, room < sizeof(name) ? room : sizeof(name));
	if (!len || len >= sizeof(name))
		return 0;
	memcpy(name, search->strings + symbol->st_name, len);
	name[len] = '\0';
	name[strcspn(name, "@")] = '\0';
	if (is_part(name))
		return 0;
	for (size_t i = 0; i < search->hooks->n; i++) {
		if (!search->wanted[i])
			continue;
		if (matches(search, i, name))
			add_function(search, i, name, symbol);
		else if (!search->into->matches[i])
			compare_near(search, i, name);
	}
	return 0;
}

static int look_in(struct own_functions_search *search, const struct elf_symbols *symbols)
{
	int r = -EBADMSG;

	if (is_late(search, TIME_STEP))
		return -ETIME;
	if (!symbols->count || symbols->strings_bytes > STRINGS_MAX ||
	    symbols->strings_bytes > search->image->bytes)
		return symbols->count ? -EBADMSG : 0;
	search->strings = xmalloc(symbols->strings_bytes);
	search->strings_bytes = symbols->strings_bytes;
	if (elf_image_read(search->image, symbols->strings, search->strings,
	                   symbols->strings_bytes))
		r = elf_symbols_each(search->image, symbols, look_at_symbol, search);
	free(search->strings);
	return r;
}

/* ---- what was found ------------------------------------------------------------------------ */

/* Who asked first gets it. */
ORDER_BY(compare_functions, struct own_function, UP(offset), UP(spec),
         ORDER_OF(strlen(a->name), strlen(b->name)), BY_TEXT(name));

static void function_free(struct own_function *function)
{
	free(function->name);
	free(function->arguments);
}

/* Two hooks at one place: the second is told of. `before` is the one in the list before it. */
static void note_taken(struct own_functions *into, const struct own_function *function,
                       const struct own_function *before, size_t by)
{
	struct own_taken *taken = &into->taken[function->spec];

	if (function->spec == before->spec)
		return; /* another name of the function, which its pattern has, too */
	if (!taken->places++)
		taken->by = by;
}

/* One for each place: a name can stand in both tables, and a function can have several. */
static void settle(struct own_functions_search *search)
{
	struct own_functions *into = search->into;
	size_t limit = own_functions_limit(search->hooks), kept = 0, in_limit = 0;
	AT_END(at_end_free) size_t *distinct = xcalloc(search->hooks->n + 1, sizeof(*distinct));
	AT_END(at_end_free) size_t *taken = xcalloc(search->hooks->n + 1, sizeof(*taken));
	bool first_kept = search->hooks->first_kept;

	if (into->n)
		qsort(into->list, into->n, sizeof(*into->list), compare_functions);
	for (size_t i = 0; i < into->n; i++) {
		if (kept && into->list[kept - 1].offset == into->list[i].offset) {
			note_taken(into, &into->list[i], &into->list[i - 1],
			           into->list[kept - 1].spec);
			function_free(&into->list[i]);
		} else {
			distinct[into->list[i].spec]++;
			into->list[kept++] = into->list[i];
		}
	}
	for (size_t i = 0; i < kept; i++) {
		size_t spec = into->list[i].spec;

		if (distinct[spec] > limit && (!first_kept || taken[spec]++ >= limit))
			function_free(&into->list[i]);
		else
			into->list[in_limit++] = into->list[i];
	}
	for (size_t i = 0; i < search->hooks->n; i++) {
		if (into->matches[i] < 2 * limit)
			into->matches[i] = distinct[i] ? distinct[i] : into->matches[i] != 0;
	}
	into->n = in_limit;
}

static void place(const struct elf_image *image, struct own_function *function)
{
	const struct emulation emulation = { .nop5 = false };
	struct placement placement = { 0 };
	uint8_t code[CODE_WINDOW];
	size_t len = sizeof(code);

	function->cheap = function->arguments != NULL; /* a marker is a nop */
	function->length = 1;
	if (function->arguments || function->offset >= image->bytes)
		return;
	if (len > image->bytes - function->offset)
		len = image->bytes - function->offset;
	if (!elf_image_read(image, function->offset, code, len))
		return;
	placement_choose(code, len, function->size, ABI_NATIVE, &emulation, &placement);
	function->skip = placement.skip;
	function->length = placement.length ? placement.length : 1;
	function->cheap = placement.emulated;
}

static int read_markers(struct own_functions_search *search)
{
	for (size_t i = 0; i < search->hooks->n; i++) {
		const struct hook_spec *spec = search->hooks->spec[i];

		if (spec->kind != SPEC_USDT || !own_functions_is_module(spec, search->path))
			continue;
		if (is_late(search, TIME_STEP))
			return -ETIME;
		own_markers_read(search->image, spec, i, search->into);
	}
	return 0;
}

static int read_all(struct own_functions_search *search)
{
	struct elf_symbols tables[2] = { 0 };
	int r = 0;

	if (elf_symbols_dynamic(search->image, &tables[0]) < 0 ||
	    elf_symbols_static(search->image, &tables[1]) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < 2 && r >= 0; i++)
		r = look_in(search, &tables[i]);
	return r < 0 ? r : read_markers(search);
}

int own_functions_read(int fd, const char *path, const struct hook_list *hooks, uint64_t cpu_ns,
                       struct own_functions *functions, struct err *err)
{
	struct elf_image image;
	struct own_functions_search search = { .image = &image,
		                               .hooks = hooks,
		                               .path = path,
		                               .into = functions,
		                               .until_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID) +
		                                           cpu_ns };
	int r = elf_image_open(&image, fd, path, err);
	const char *no_return;

	*functions = (struct own_functions){ .n_specs = hooks->n };
	if (r)
		return r;
	functions->matches = xcalloc(hooks->n + 1, sizeof(*functions->matches));
	functions->near = xcalloc(hooks->n + 1, sizeof(char *));
	functions->taken = xcalloc(hooks->n + 1, sizeof(*functions->taken));
	search.wanted = xcalloc(hooks->n + 1, sizeof(bool));
	search.plain = xcalloc(hooks->n + 1, sizeof(*search.plain));
	for (size_t i = 0; i < hooks->n; i++) {
		search.plain[i] = strcspn(hooks->spec[i]->glob, GLOB_BEGINS);
		search.wanted[i] = own_functions_is_module(hooks->spec[i], path) &&
		                   hooks->spec[i]->kind != SPEC_USDT;
	}
	r = read_all(&search);
	if (r == -ETIME)
		err_set(err, ETIME,
		        "%s has so many symbols that looking for hooks takes more than %.1f s",
		        path, (double)cpu_ns / 1e9);
	else if (r)
		err_set(err, EBADMSG, "%s is damaged: its symbol tables make no sense", path);
	settle(&search);
	no_return = functions->n ? no_return_for_file(&image) : NULL;
	for (size_t i = 0; i < functions->n; i++) {
		struct own_function *function = &functions->list[i];

		place(&image, function);
		function->no_return = no_return ? no_return : no_return_for_symbol(function->name);
	}
	free(search.wanted);
	free(search.plain);
	elf_image_close(&image);
	if (r)
		own_functions_free(functions);
	return r;
}

void own_functions_free(struct own_functions *functions)
{
	for (size_t i = 0; i < functions->n; i++)
		function_free(&functions->list[i]);
	for (size_t i = 0; functions->near && i < functions->n_specs; i++)
		free(functions->near[i]);
	free(functions->list);
	free(functions->matches);
	free(functions->near);
	free(functions->taken);
	*functions = (struct own_functions){ 0 };
}
