// SPDX-License-Identifier: MIT
/* Parses the argument string of a row; row.h describes the language. */
#include "cuda/row.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* ---- guess --------------------------------------------------------------------------------- */

/*
 * What can be told of a function from its name alone, so that one that came with a newer CUDA is
 * filed and switched as its relatives are.
 */

/* Class by the beginning of the name behind cu, cuda or __cuda; the first that fits. */
static const struct {
	const char *begin;
	enum api_class cls;
} guess_beginnings[] = {
	{ "Launch", CLASS_LAUNCH },
	{ "MemcpyNode", CLASS_GRAPH },
	{ "Memcpy", CLASS_TRANSFER },
	{ "Memset", CLASS_TRANSFER },
	{ "MemPrefetch", CLASS_TRANSFER },
	{ "MemDiscard", CLASS_TRANSFER },
	{ "MemBatch", CLASS_TRANSFER },
	{ "Mem", CLASS_MEMORY },
	{ "Malloc", CLASS_MEMORY },
	{ "Free", CLASS_MEMORY },
	{ "Host", CLASS_MEMORY },
	{ "Array", CLASS_MEMORY },
	{ "Mipmapped", CLASS_MEMORY },
	{ "GetMipmapped", CLASS_MEMORY },
	{ "Multicast", CLASS_MEMORY },
	{ "Pointer", CLASS_MEMORY },
	{ "IpcGetEvent", CLASS_EVENT },
	{ "IpcOpenEvent", CLASS_EVENT },
	{ "Ipc", CLASS_MEMORY },
	{ "ImportExternalMemory", CLASS_MEMORY },
	{ "ExternalMemory", CLASS_MEMORY },
	{ "DestroyExternalMemory", CLASS_MEMORY },
	{ "ImportExternalSemaphore", CLASS_STREAM },
	{ "DestroyExternalSemaphore", CLASS_STREAM },
	{ "StreamBeginCapture", CLASS_GRAPH },
	{ "StreamBeginRecapture", CLASS_GRAPH },
	{ "Stream", CLASS_STREAM },
	{ "Event", CLASS_EVENT },
	{ "Graphics", CLASS_OTHER },
	{ "Graph", CLASS_GRAPH },
	{ "UserObject", CLASS_GRAPH },
	{ "Module", CLASS_MODULE },
	{ "Library", CLASS_MODULE },
	{ "Kernel", CLASS_MODULE },
	{ "Func", CLASS_MODULE },
	{ "Link", CLASS_MODULE },
	{ "Register", CLASS_MODULE },
	{ "Unregister", CLASS_MODULE },
	{ "Device", CLASS_DEVICE },
	{ "Dev", CLASS_DEVICE },
	{ "Ctx", CLASS_DEVICE },
	{ "GreenCtx", CLASS_DEVICE },
	{ "Init", CLASS_DEVICE },
	{ "Driver", CLASS_DEVICE },
	{ "SetValidDevices", CLASS_DEVICE },
	{ "ChooseDevice", CLASS_DEVICE },
	{ "FlushGPUDirect", CLASS_DEVICE },
};

/*
 * Off: names with one of these words. They answer from what the library knows already, in tens of
 * nanoseconds, and make up 94 % of a training step's calls.
 */
static const char *const off_words[] = {
	"Get", "Query", "Is", "Can", "Peek", "Occupancy", "Info", "TensorMap",
};

/* On all the same: they say Get and make something. */
static const char *const on_words[] = { "GetMapped" };

/* Off: what nvcc's generated code calls at start, once a variable. */
static const char *const off_beginnings[] = { "__cudaRegister", "__cudaInit" };

static bool guess_begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static const char *behind_prefix(const char *base)
{
	static const char *const prefixes[] = { "__cuda", "cuda", "cu" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (guess_begins(base, prefixes[i]))
			return base + strlen(prefixes[i]);
	return base;
}

/* Whether one of the name's words, each of which begins with a capital, begins with `word`. */
static bool has_word(const char *name, const char *word)
{
	for (const char *at = name; (at = strstr(at, word)); at++) {
		char next = at[strlen(word)];

		if (next < 'a' || next > 'z')
			return true;
	}
	return false;
}

enum api_class guess_class(const char *base)
{
	const char *name = behind_prefix(base);

	if (has_word(name, "Synchronize"))
		return CLASS_SYNC;
	for (size_t i = 0; i < ARRAY_SIZE(guess_beginnings); i++)
		if (guess_begins(name, guess_beginnings[i].begin))
			return guess_beginnings[i].cls;
	return CLASS_OTHER;
}

bool guess_default_on(const char *base)
{
	const char *name = behind_prefix(base);

	for (size_t i = 0; i < ARRAY_SIZE(off_beginnings); i++)
		if (guess_begins(base, off_beginnings[i]))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(on_words); i++)
		if (strstr(name, on_words[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(off_words); i++)
		if (has_word(name, off_words[i]))
			return false;
	return true;
}

/* ---- spec ---------------------------------------------------------------------------------- */

/* The words for types. `width` is what C passes: upper halves of 4-byte arguments are garbage. */
static const struct word {
	const char *word;
	uint8_t type, width, part, scale;
} words[] = {
	{ "int", T_INT, 4, PART_NONE, 0 },
	{ "uint", T_UINT, 4, PART_NONE, 0 },
	{ "u64", T_U64, 8, PART_NONE, 0 },
	{ "s64", T_S64, 8, PART_NONE, 0 },
	{ "float", T_FLOAT, 4, PART_NONE, 0 },
	{ "hex", T_HEX, 4, PART_NONE, 0 },
	{ "hex64", T_HEX, 8, PART_NONE, 0 },
	{ "size", T_SIZE, 8, PART_NONE, 0 },
	{ "bytes", T_BYTES, 8, PART_FACTOR, 1 },
	{ "words", T_U64, 8, PART_FACTOR, 2 },
	{ "dwords", T_U64, 8, PART_FACTOR, 4 },
	{ "times", T_U64, 8, PART_FACTOR, 1 },
	{ "spare", T_SIZE, 8, PART_SPARE, 1 },
	{ "dim", T_U64, 8, PART_DIM, 0 },
	{ "launches", T_UINT, 4, PART_LAUNCHES, 0 },
	{ "channels", T_UINT, 4, PART_FACTOR, 1 },
	{ "levels", T_UINT, 4, PART_LEVELS, 0 },
	{ "bits", T_UINT, 4, PART_BITS, 0 },
	{ "format", T_HEX, 4, PART_FORMAT, 0 },
	{ "length", T_SIZE, 8, PART_FACTOR, 1 },
	{ "ptr", T_PTR, 8, PART_ADDRESS, 0 },
	{ "at", T_ADDR, 8, PART_ADDRESS, 0 },
	{ "held", T_HANDLE, 8, PART_ADDRESS, 0 },
	{ "mapped", T_HANDLE, 8, PART_SOURCE, 0 },
	{ "dst", T_DST, 8, PART_ADDRESS, 0 },
	{ "src", T_SRC, 8, PART_SOURCE, 0 },
	{ "addr", T_ADDR, 8, PART_NONE, 0 },
	{ "stream", T_STREAM, 8, PART_STREAM, 0 },
	{ "event", T_EVENT, 8, PART_EVENT, 0 },
	{ "kernel", T_KERNEL, 8, PART_HANDLE, 0 },
	{ "hostfun", T_HOSTFUN, 8, PART_HANDLE, 0 },
	{ "graphexec", T_GRAPHEXEC, 8, PART_HANDLE, 0 },
	{ "string", T_STRING, 8, PART_NONE, 0 },
	{ "copykind", T_COPYKIND, 4, PART_KIND, 0 },
	{ "device", T_DEVICE, 4, PART_NONE, 0 },
	{ "context", T_CONTEXT, 8, PART_NONE, 0 },
	{ "module", T_MODULE, 8, PART_NONE, 0 },
	{ "graph", T_GRAPH, 8, PART_SOURCE, 0 },
	{ "pool", T_POOL, 8, PART_NONE, 0 },
	{ "handle", T_HANDLE, 8, PART_NONE, 0 },
	{ "shmem", T_SHMEM, 8, PART_SHMEM, 0 },
	{ "srctype", T_UINT, 4, PART_SRC_TYPE, 0 },
	{ "srchost", T_ADDR, 8, PART_SRC_HOST, 0 },
	{ "srcdevice", T_ADDR, 8, PART_SRC_DEVICE, 0 },
	{ "srcarray", T_HANDLE, 8, PART_SRC_ARRAY, 0 },
	{ "dsttype", T_UINT, 4, PART_DST_TYPE, 0 },
	{ "dsthost", T_ADDR, 8, PART_DST_HOST, 0 },
	{ "dstdevice", T_ADDR, 8, PART_DST_DEVICE, 0 },
	{ "dstarray", T_HANDLE, 8, PART_DST_ARRAY, 0 },
};

/* Types of more than one value. */
static const struct dims {
	const char *word;
	uint8_t type, part;
	uint8_t count;  /* values */
	bool by_struct; /* one dim3, rather than a parameter each */
} dims[] = {
	{ "grid", T_GRID, PART_GRID, 3, true },   { "block", T_BLOCK, PART_BLOCK, 3, true },
	{ "grid3", T_GRID, PART_GRID, 3, false }, { "block3", T_BLOCK, PART_BLOCK, 3, false },
	{ "grid2", T_GRID, PART_GRID, 2, false },
};

/* One `name:type` of a spec, taken apart. */
struct spec_item {
	char name[24];
	char word[16];
	bool out;
	bool field;     /* has an offset: lies in or behind the parameter before */
	unsigned width; /* 0: that of the type */
	unsigned offset;
};

/* Copies up to one of `ends`; false where it does not fit. */
static bool take(const char **at, const char *ends, char *into, size_t size)
{
	size_t len = strcspn(*at, ends);

	if (len >= size)
		return false;
	memcpy(into, *at, len);
	into[len] = '\0';
	*at += len;
	return true;
}

static bool take_number(const char **at, char mark, unsigned *value)
{
	char *end;

	if (**at != mark)
		return true;
	*value = (unsigned)strtoul(*at + 1, &end, 10);
	if (end == *at + 1)
		return false;
	*at = end;
	return true;
}

/* Names go into every output as they are: nothing in them may need an escape. */
static bool is_name(const char *name)
{
	if (!strcmp(name, "-"))
		return true;
	while (isalnum((unsigned char)*name) || *name == '_')
		name++;
	return !*name;
}

/* Reads the item at `*at` and moves on to the next. */
static bool take_item(const char **at, struct spec_item *item)
{
	memset(item, 0, sizeof(*item));
	if (!take(at, ": ", item->name, sizeof(item->name)) || !item->name[0] ||
	    !is_name(item->name))
		return false;
	if (**at == ':') {
		++*at;
		item->out = **at == '*';
		*at += item->out;
		if (!take(at, "/@ ", item->word, sizeof(item->word)))
			return false;
		if (!take_number(at, '/', &item->width))
			return false;
		item->field = **at == '@';
		if (!take_number(at, '@', &item->offset))
			return false;
	}
	if (**at && **at != ' ')
		return false;
	*at += strspn(*at, " ");
	return true;
}

static bool add_param(struct api *api, unsigned bytes)
{
	if (api->n_params == PARAMS_MAX)
		return false;
	api->param_bytes[api->n_params++] = (uint8_t)bytes;
	return true;
}

static bool add_arg(struct api *api, const struct spec_item *item, uint8_t type, uint8_t *index)
{
	struct api_arg *arg = &api->arg[api->n_args];

	*index = NO_ARG;
	if (!strcmp(item->name, "-"))
		return true;
	if (api->n_args == API_ARGS_MAX)
		return false;
	memcpy(arg->name, item->name, sizeof(arg->name));
	arg->type = type;
	arg->out = item->out;
	*index = api->n_args++;
	return true;
}

static bool add_piece(struct api *api, const struct spec_item *item, struct piece piece)
{
	if (!api->n_params || api->n_pieces == PIECES_MAX)
		return false;
	piece.param = api->n_params - 1;
	piece.out = item->out;
	/* A field of a struct by value is no further than the parameter itself. */
	piece.deref = item->out || (item->field && api->param_bytes[piece.param] == 8);
	api->piece[api->n_pieces++] = piece;
	return true;
}

/* Grid and block: `count` values shown as one argument. */
static bool add_dims(struct api *api, const struct spec_item *item, const struct dims *d)
{
	struct piece piece = { .type = d->type, .width = 4 };

	if (!add_arg(api, item, d->type, &piece.arg))
		return false;
	if (d->by_struct && !item->field && !add_param(api, 12))
		return false;
	for (unsigned i = 0; i < d->count; i++) {
		if (!d->by_struct && !add_param(api, 8))
			return false;
		piece.part = d->part + i;
		piece.offset = d->by_struct ? item->offset + 4 * i : 0;
		if (!add_piece(api, item, piece))
			return false;
	}
	return true;
}

static bool add_value(struct api *api, const struct spec_item *item, const struct word *w)
{
	struct piece piece = {
		.type = w->type,
		.part = w->part,
		.width = item->width ? item->width : w->width,
		.scale = w->scale,
		.offset = item->offset,
	};

	if (!item->field && !add_param(api, 8))
		return false;
	return add_arg(api, item, w->type, &piece.arg) && add_piece(api, item, piece);
}

static bool add_item(struct api *api, const struct spec_item *item)
{
	if (!item->word[0])
		return !strcmp(item->name, "-") && add_param(api, 8);
	if (!strncmp(item->word, "struct", 6))
		return add_param(api, (unsigned)atoi(item->word + 6));
	for (size_t i = 0; i < ARRAY_SIZE(dims); i++)
		if (!strcmp(dims[i].word, item->word))
			return add_dims(api, item, &dims[i]);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(words[i].word, item->word))
			return add_value(api, item, &words[i]);
	return false;
}

bool api_parse(struct api *api, const struct api_row *row)
{
	const char *at = row->spec;
	struct spec_item item;

	memset(api, 0, sizeof(*api));
	api->row = row;
	while (*at)
		if (!take_item(&at, &item) || !add_item(api, &item))
			return false;
	return true;
}
