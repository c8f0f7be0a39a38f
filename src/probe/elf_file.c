// SPDX-License-Identifier: MIT
#include "probe/elf_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/order.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "probe/elf_image.h"
#include "probe/elf_runtime.h"

/* The strings of .symtab that ELF_SMALL_SYMTAB still reads. */
#define SMALL_STRINGS (16u << 20)
#define SMALL_SYMBOLS (1u << 20)

/*
 * The strings of a module are loaded while it is listed, if they are as few as those of CUDA's
 * libraries. Of a program with the runtime linked in they can be hundreds of MB, and a file that
 * takes 8 KiB of a disk can have as many: there the places of names are looked for.
 */
#define MODULE_STRINGS_MAX (256u << 20)
#define STRINGS_LOADED     (16u << 20)
#define STRINGS_PART       (64u << 10)
#define NAMES_MAX          (1u << 20) /* places of what may be a name */
#define NAMES_TRIED        (4u << 20) /* of what begins as one */
#define NAMED_MAX          (1u << 16) /* symbols at such a place, each of which is read */

/* libcuda exports about 680 functions, libcudart about 420. */
#define FUNCTIONS_MAX 16384

#define ALSO_MOST      512 /* bytes of other names of a function, and one more name */
#define NAME_MAX_BYTES 128 /* of an API function */
#define BYTES_MAX      (1u << 20)
#define BYTES_AHEAD    16384 /* most functions lie close to the one before */

/* What elf_file_bytes has read last: its own to change in a const file. */
struct window {
	uint64_t offset;
	size_t len, room;
	uint8_t *data;
};

struct elf_file {
	struct elf_image image;
	struct elf_symbols dynamic, statics; /* count 0 where the file has none */
	bool has_layer[2];
	struct elf_function *functions;
	size_t n_functions;
	struct window *window;
};

/* ---- which layers the file plays ------------------------------------------------------------- */

/* Where the functions of each layer are listed; NULL where the file does not play it. */
struct roles {
	const struct elf_symbols *driver, *runtime;
};

static int find_dynamic_roles(struct elf_file *file, struct roles *roles)
{
	const struct elf_image *image = &file->image;
	const struct elf_symbols *symbols = &file->dynamic;
	int init, launch, runtime;

	init = elf_symbols_find(image, symbols, "cuInit", false, NULL);
	if (init < 0)
		return init;
	launch = init ? elf_symbols_find(image, symbols, "cuLaunchKernel", false, NULL) : 0;
	if (launch < 0)
		return launch;
	runtime = elf_symbols_find(image, symbols, "cudaLaunchKernel", false, NULL);
	if (runtime < 0)
		return runtime;
	roles->driver = launch ? symbols : NULL;
	roles->runtime = runtime ? symbols : NULL;
	return 0;
}

static bool is_within(enum elf_depth depth, const struct elf_symbols *statics)
{
	return depth == ELF_WHOLE ||
	       (depth == ELF_SMALL_SYMTAB && statics->strings_bytes <= SMALL_STRINGS &&
	        statics->count <= SMALL_SYMBOLS);
}

/* Returns as elf_file_open does: 0, 1 for no runtime, 2 for undecided at this depth, -EBADMSG. */
static int find_static_role(struct elf_file *file, enum elf_depth depth, struct roles *roles)
{
	int rc;

	if (!is_within(depth, &file->statics))
		return 2;
	rc = elf_symbols_find(&file->image, &file->statics, "cudaLaunchKernel", false, NULL);
	if (rc <= 0)
		return rc < 0 ? rc : 1;
	roles->runtime = &file->statics;
	return 0;
}

/* A runtime that is linked in, where no symbols are left. Returns as elf_file_open does. */
static int list_unnamed(struct elf_file *file, enum elf_depth depth)
{
	AT_END(at_end_free) struct elf_runtime_function *list = NULL;
	size_t n = 0;
	int rc = depth == ELF_DYNSYM_ONLY
	                 ? 1
	                 : elf_runtime_find(&file->image, depth == ELF_WHOLE, &list, &n);

	file->functions = n ? xcalloc(n, sizeof(*file->functions)) : NULL;
	for (size_t i = 0; i < n; i++) {
		uint64_t offset = elf_image_offset(&file->image, list[i].address, 1, false);

		if (!offset)
			continue;
		file->functions[file->n_functions++] = (struct elf_function){
			.name = xstrdup(list[i].name),
			.address = list[i].address,
			.offset = offset,
			.size = list[i].size,
			.layer = LAYER_RUNTIME,
		};
	}
	file->has_layer[LAYER_RUNTIME] = n;
	return rc;
}

/* Returns as elf_file_open does, without the sentence. */
static int find_roles(struct elf_file *file, enum elf_depth depth, struct roles *roles)
{
	int dynamic_rc = elf_symbols_dynamic(&file->image, &file->dynamic);
	int static_rc = elf_symbols_static(&file->image, &file->statics);

	if (dynamic_rc == 0)
		dynamic_rc = find_dynamic_roles(file, roles);
	if (dynamic_rc < 0)
		return dynamic_rc;
	if (static_rc == 0 && !roles->runtime)
		static_rc = find_static_role(file, depth, roles);
	/* A module is one whatever may be wrong with a .symtab that nobody needs at run time. */
	return roles->driver || roles->runtime ? 0 : static_rc;
}

/* ---- listing the functions ------------------------------------------------------------------- */

struct elf_file_listing {
	struct elf_file *file;
	enum api_layer layer;
	const struct elf_symbols *symbols;
	char *strings; /* NULL: `places` is there */
	uint64_t strings_bytes;
	uint32_t *places; /* of names in the strings, in order */
	size_t n_places, tried, named;
};

/*
 * Length of the API name at `text`, 0 if it is none. A name with other characters belongs to a
 * fragment of a function that the compiler split off (".cold", ".part.0") or cloned with other
 * arguments (".constprop.0"). In .symtab the version may follow: "@@libcudart.so.13".
 */
static size_t api_name_length(const char *text, uint64_t room)
{
	size_t len = 0;

	while (len < room && len < NAME_MAX_BYTES && text[len] && text[len] != '@') {
		char c = text[len++];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_'))
			return 0;
	}
	return len < room && len < NAME_MAX_BYTES ? len : 0;
}

/*
 * nvcc writes one such function into every object of a program with separate compilation (127 of
 * them in NCCL). Each is called once, when the program is loaded, and is no part of the API.
 */
static bool is_written_by_nvcc(const char *name)
{
	static const char prefix[] = "__cudaRegisterLinkedBinary_";

	return strncmp(name, prefix, sizeof(prefix) - 1) == 0;
}

static enum api_layer layer_of(const char *name)
{
	return strncmp(name, "cuda", 4) == 0 || name[0] == '_' ? LAYER_RUNTIME : LAYER_DRIVER;
}

/* The name of a symbol, up to a NUL; "": it is none. Or a negative errno. */
static int name_of(struct elf_file_listing *listing, const Elf64_Sym *symbol,
                   char name[NAME_MAX_BYTES])
{
	uint64_t left = listing->strings_bytes - symbol->st_name;
	uint64_t room = left < NAME_MAX_BYTES ? left : NAME_MAX_BYTES;
	size_t low, len;

	name[0] = '\0';
	if (symbol->st_name >= listing->strings_bytes)
		return 0;
	if (listing->strings) {
		memcpy(name, listing->strings + symbol->st_name, room);
	} else {
		low = ARRAY_BEFORE(listing->n_places, i, listing->places[i] <= symbol->st_name);
		if (!low || listing->places[low - 1] != symbol->st_name)
			return 0;
		if (listing->named++ == NAMED_MAX ||
		    !elf_image_read(&listing->file->image,
		                    listing->symbols->strings + symbol->st_name, name, room))
			return -EBADMSG;
	}
	len = api_name_length(name, room);
	name[len] = '\0';
	return 0;
}

static int add_function(const Elf64_Sym *symbol, void *data)
{
	struct elf_file_listing *listing = data;
	struct elf_file *file = listing->file;
	struct elf_function *function;
	char name[NAME_MAX_BYTES];
	uint64_t offset;
	int rc = name_of(listing, symbol, name);

	if (rc || !*name || !api_is_symbol(name) || is_written_by_nvcc(name) ||
	    layer_of(name) != listing->layer)
		return rc;
	/* What lies in no executable segment is never run: the file is odd or the symbol
	 * is wrong. */
	offset = elf_image_offset(&file->image, symbol->st_value, 1, true);
	if (!offset)
		return 0;
	if (file->n_functions == FUNCTIONS_MAX)
		return -EBADMSG;
	file->functions = vec_room(file->functions, file->n_functions, sizeof(*function));
	function = &file->functions[file->n_functions++];
	function->name = xstrdup(name);
	function->also = NULL;
	function->address = symbol->st_value;
	function->offset = offset;
	function->size = symbol->st_size;
	function->layer = listing->layer;
	return 0;
}

static bool begins_as_name(const char *text)
{
	if (text[0] == '_')
		return !strncmp(text, "__cuda", 6) && isupper((unsigned char)text[6]);
	return isupper((unsigned char)text[2]) ||
	       (!strncmp(text, "cuda", 4) && isupper((unsigned char)text[4]));
}

/* What may be a name at a place of a part, behind which are NUL bytes. False: there are too many.
 */
static bool note_place(struct elf_file_listing *listing, const char *text, const char *end,
                       uint64_t at)
{
	if (!begins_as_name(text))
		return true;
	if (listing->tried++ == NAMES_TRIED)
		return false;
	if (!api_name_length(text, (uint64_t)(end - text)))
		return true;
	if (listing->n_places == NAMES_MAX)
		return false;
	listing->places = vec_room(listing->places, listing->n_places, sizeof(*listing->places));
	listing->places[listing->n_places++] = (uint32_t)at;
	return true;
}

/* Of the names that begin within the first `bytes` of a part, which has `have`. */
static bool note_places(struct elf_file_listing *listing, const char *part, size_t bytes,
                        size_t have, uint64_t base)
{
	const char *end = part + have, *at = part;
	bool ok = true;

	while (ok && (at = memmem(at, (size_t)(end - at), "cu", 2)) && at < part + bytes + 2) {
		const char *long_one = at - 2; /* "__cuda" is before "cuda" */

		if (long_one >= part && long_one < part + bytes && *long_one == '_')
			ok = note_place(listing, long_one, end, base + (uint64_t)(long_one - part));
		if (ok && at < part + bytes)
			ok = note_place(listing, at, end, base + (uint64_t)(at - part));
		at++;
	}
	return ok;
}

/* Parts overlap by a name. */
static bool find_places(struct elf_file_listing *listing)
{
	AT_END(at_end_free) char *part = xcalloc(1, STRINGS_PART + NAME_MAX_BYTES);
	uint64_t bytes = listing->strings_bytes;
	size_t step = STRINGS_PART - NAME_MAX_BYTES;

	for (uint64_t at = 0; at < bytes; at += step) {
		uint64_t left = bytes - at;
		size_t have = left < STRINGS_PART ? left : STRINGS_PART;

		memset(part + have, 0, NAME_MAX_BYTES);
		if (!elf_image_read(&listing->file->image, listing->symbols->strings + at, part,
		                    have) ||
		    !note_places(listing, part, have < step ? have : step, have, at))
			return false;
	}
	return true;
}

static bool load_strings(struct elf_file_listing *listing)
{
	if (listing->strings_bytes > STRINGS_LOADED)
		return find_places(listing);
	listing->strings = xmalloc(listing->strings_bytes + 1);
	return elf_image_read(&listing->file->image, listing->symbols->strings, listing->strings,
	                      listing->strings_bytes);
}

static int list_layer(struct elf_file *file, const struct elf_symbols *symbols,
                      enum api_layer layer)
{
	struct elf_file_listing listing = { .file = file,
		                            .layer = layer,
		                            .symbols = symbols,
		                            .strings_bytes = symbols->strings_bytes };
	int rc = -EBADMSG;

	if (symbols->strings_bytes > MODULE_STRINGS_MAX ||
	    symbols->strings_bytes > file->image.bytes)
		return -EBADMSG;
	if (load_strings(&listing))
		rc = elf_symbols_each(&file->image, symbols, add_function, &listing);
	free(listing.strings);
	free(listing.places);
	file->has_layer[layer] = true;
	return rc;
}

ORDER_BY(compare_functions, struct elf_function, UP(offset),
         ORDER_OF(strlen(a->name), strlen(b->name)), BY_TEXT(name));

static bool is_narrow(const char *name)
{
	const struct api *api = api_find(name);

	return api && api_is_narrow(api);
}

/* Takes a name over, as an alias or the name itself. */
static void add_alias(struct elf_function *function, const char *name)
{
	char *also = (char *)function->also, *other = (char *)name;

	if (is_narrow(function->name) && !is_narrow(name)) {
		other = (char *)function->name;
		function->name = name;
	}
	if (strlen(also ? also : "") < ALSO_MOST)
		function->also = xasprintf("%s%s%s", also ? also : "", also ? ", " : "", other);
	if (function->also != also)
		free(also);
	free(other);
}

static void sort_functions(struct elf_file *file)
{
	size_t kept = 0;

	if (file->n_functions)
		qsort(file->functions, file->n_functions, sizeof(*file->functions),
		      compare_functions);
	for (size_t i = 0; i < file->n_functions; i++) {
		if (kept && file->functions[kept - 1].offset == file->functions[i].offset)
			add_alias(&file->functions[kept - 1], file->functions[i].name);
		else
			file->functions[kept++] = file->functions[i];
	}
	file->n_functions = kept;
}

/* ---- the file -------------------------------------------------------------------------------- */

int elf_file_open(int fd, const char *what, enum elf_depth depth, struct elf_file **out,
                  struct err *err)
{
	struct elf_file *file = xcalloc(1, sizeof(*file));
	struct roles roles = { NULL, NULL };
	int rc;

	*out = NULL;
	file->window = xcalloc(1, sizeof(*file->window));
	rc = elf_image_open(&file->image, fd, what, err);
	if (rc) {
		elf_file_free(file);
		return rc;
	}
	rc = find_roles(file, depth, &roles);
	if (rc == 1)
		rc = list_unnamed(file, depth);
	if (!rc && roles.driver)
		rc = list_layer(file, roles.driver, LAYER_DRIVER);
	if (!rc && roles.runtime)
		rc = list_layer(file, roles.runtime, LAYER_RUNTIME);
	if (rc) {
		elf_file_free(file);
		if (rc == -ENOTSUP)
			return err_set(err, rc,
			               "%s has the CUDA runtime linked in without symbols, and its "
			               "functions were not found: calls are seen where they reach "
			               "the driver",
			               what);
		return rc > 0 ? rc
		              : err_set(err, rc, "%s is damaged: its symbol tables make no sense",
		                        what);
	}
	sort_functions(file);
	*out = file;
	return 0;
}

void elf_file_free(struct elf_file *file)
{
	if (!file)
		return;
	free(file->window->data);
	free(file->window);
	for (size_t i = 0; i < file->n_functions; i++) {
		free((char *)file->functions[i].name);
		free((char *)file->functions[i].also);
	}
	free(file->functions);
	elf_image_close(&file->image);
	free(file);
}

size_t elf_file_functions(const struct elf_file *file, const struct elf_function **functions)
{
	*functions = file->functions;
	return file->n_functions;
}

bool elf_file_has_layer(const struct elf_file *file, enum api_layer layer)
{
	return file->has_layer[layer];
}

static bool window_read(const struct elf_file *file, uint64_t offset, size_t len)
{
	struct window *window = file->window;

	window->len = 0;
	if (len > window->room) {
		free(window->data);
		window->data = xmalloc(len);
		window->room = len;
	}
	if (!elf_image_read(&file->image, offset, window->data, len))
		return false;
	window->offset = offset;
	window->len = len;
	return true;
}

const uint8_t *elf_file_bytes(const struct elf_file *file, uint64_t offset, size_t *len)
{
	const struct window *window = file->window;
	uint64_t left = offset < file->image.bytes ? file->image.bytes - offset : 0;
	size_t wanted = *len < BYTES_MAX ? *len : BYTES_MAX, ahead = BYTES_AHEAD;

	*len = 0;
	if (!left)
		return NULL;
	wanted = wanted < left ? wanted : (size_t)left;
	ahead = ahead < left ? ahead : (size_t)left;
	if ((offset < window->offset || offset - window->offset > window->len ||
	     wanted > window->len - (offset - window->offset)) &&
	    !(wanted < ahead && window_read(file, offset, ahead)) &&
	    !window_read(file, offset, wanted))
		return NULL;
	*len = wanted;
	return window->data + (offset - window->offset);
}
