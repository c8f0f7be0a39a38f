// SPDX-License-Identifier: MIT
/* Looking functions up: the two tables as one, parsed once and sorted by name. */
#include "cuda/api.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/order.h"
#include "base/xalloc.h"
#include "cuda/row.h"

const char *const api_class_names[CLASS_COUNT + 1] = {
	[CLASS_LAUNCH] = "launch", [CLASS_MEMORY] = "memory", [CLASS_TRANSFER] = "transfer",
	[CLASS_SYNC] = "sync",     [CLASS_STREAM] = "stream", [CLASS_EVENT] = "event",
	[CLASS_GRAPH] = "graph",   [CLASS_MODULE] = "module", [CLASS_DEVICE] = "device",
	[CLASS_OTHER] = "other",
};

static const char *const direction_names[DIRECTION_COUNT] = {
	[DIRECTION_NONE] = "unknown",    [DIRECTION_H2D] = "H2D", [DIRECTION_D2H] = "D2H",
	[DIRECTION_D2D] = "D2D",         [DIRECTION_H2H] = "H2H", [DIRECTION_P2P] = "P2P",
	[DIRECTION_DEFAULT] = "default",
};

static const char *const memory_names[MEMORY_COUNT] = {
	[MEMORY_NONE] = "none",       [MEMORY_DEVICE] = "device", [MEMORY_ASYNC] = "async",
	[MEMORY_MANAGED] = "managed", [MEMORY_HOST] = "host",     [MEMORY_ARRAY] = "array",
	[MEMORY_VMM] = "vmm",         [MEMORY_VMM_VA] = "vmm-va",
};

/* ---- names --------------------------------------------------------------------------------- */

#define NAME_MAX_BYTES 96 /* the longest of CUDA 13 has 61 */

/* A symbol taken apart: cuMemcpyHtoD_v2_ptds. */
struct api_name {
	char versioned[NAME_MAX_BYTES]; /* cuMemcpyHtoD_v2 */
	char base[NAME_MAX_BYTES];      /* cuMemcpyHtoD */
	unsigned version;               /* 2; 1 where none is said */
};

bool api_is_per_thread(const char *symbol)
{
	size_t len = strlen(symbol);

	return len > 5 && symbol[len - 5] == '_' &&
	       (!strcmp(symbol + len - 5, "_ptsz") || !strcmp(symbol + len - 5, "_ptds"));
}

static void cut_stream_suffix(char *name)
{
	if (api_is_per_thread(name))
		name[strlen(name) - strlen("_ptsz")] = '\0';
}

static unsigned cut_version(char *name)
{
	char *at = strrchr(name, '_');
	unsigned long version;
	char *end;

	if (!at || at == name || at[1] != 'v' || !isdigit((unsigned char)at[2]))
		return 1;
	version = strtoul(at + 2, &end, 10);
	if (*end || version > 1000000)
		return 1;
	*at = '\0';
	return (unsigned)version;
}

static bool take_apart(const char *symbol, struct api_name *name)
{
	size_t len = strlen(symbol);

	if (len >= sizeof(name->versioned))
		return false;
	memcpy(name->versioned, symbol, len + 1);
	cut_stream_suffix(name->versioned);
	memcpy(name->base, name->versioned, len + 1);
	name->version = cut_version(name->base);
	return true;
}

bool api_is_symbol(const char *symbol)
{
	static const char *const prefixes[] = { "cu", "cuda", "__cuda" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t len = strlen(prefixes[i]);

		if (strncmp(symbol, prefixes[i], len) || !isupper((unsigned char)symbol[len]))
			continue;
		/* A dot: a part that the compiler split off, such as cudaFree.cold. */
		for (const char *at = symbol + len; *at; at++)
			if (!isalnum((unsigned char)*at) && *at != '_')
				return false;
		return true;
	}
	return false;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static struct {
	struct api *apis; /* sorted by name */
	size_t count;
} table;

ORDER_BY(compare_apis, struct api, BY_TEXT(row->name));

static int compare_name(const void *name, const void *api)
{
	return strcmp(name, ((const struct api *)api)->row->name);
}

static void add_rows(const struct api_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct api *api = &table.apis[table.count++];

		api_parse(api, &rows[i]); /* tests/unit/test_cuda_table.c: none fails */
		for (enum api_abi abi = 0; abi < ABI_COUNT; abi++)
			api_lay_out(api, abi);
	}
}

static void build_table(void)
{
	table.apis = xcalloc(n_driver_rows + n_runtime_rows, sizeof(*table.apis));
	add_rows(driver_rows, n_driver_rows);
	add_rows(runtime_rows, n_runtime_rows);
	qsort(table.apis, table.count, sizeof(*table.apis), compare_apis);
}

const char *api_known(size_t index)
{
	if (index < n_driver_rows)
		return driver_rows[index].name;
	index -= n_driver_rows;
	return index < n_runtime_rows ? runtime_rows[index].name : NULL;
}

static const struct api *find_exactly(const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, build_table);
	return bsearch(name, table.apis, table.count, sizeof(*table.apis), compare_name);
}

const struct api *api_find(const char *symbol)
{
	const struct api *api;
	struct api_name name;

	if (!take_apart(symbol, &name))
		return NULL;
	api = find_exactly(name.versioned);
	if (api || name.version == 1)
		return api;
	api = find_exactly(name.base);
	return api && name.version == 2 && (api->row->flags & V2) ? api : NULL;
}

/* For class and default alone, where any version will do. */
static const struct api *find_relative(const char *symbol, struct api_name *name)
{
	const struct api *api = api_find(symbol);

	if (!take_apart(symbol, name))
		name->base[0] = '\0';
	return api ? api : find_exactly(name->base);
}

const char *api_layer_name(enum api_layer layer)
{
	static const char *const names[LAYER_COUNT] = { [LAYER_DRIVER] = "driver",
		                                        [LAYER_RUNTIME] = "runtime",
		                                        [LAYER_KERNEL] = "kernel",
		                                        [LAYER_HOOK] = "hook" };

	return layer < LAYER_COUNT ? names[layer] : "?";
}

enum api_class api_class(const char *symbol)
{
	struct api_name name;
	const struct api *api = find_relative(symbol, &name);

	return api ? api->row->cls : guess_class(name.base);
}

bool api_default_on(const char *symbol)
{
	struct api_name name;
	const struct api *api = find_relative(symbol, &name);

	return api ? !(api->row->flags & OFF) : guess_default_on(name.base);
}

bool api_returns_status(const char *symbol)
{
	static const char *const beginnings[] = {
		"__cudaRegister",   "__cudaUnregister",   "__cudaInitModule",
		"cudaGetErrorName", "cudaGetErrorString", "cudaCreateChannelDesc",
	};

	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
		if (!strncmp(symbol, beginnings[i], strlen(beginnings[i])))
			return false;
	return true;
}

/* ---- of one row ---------------------------------------------------------------------------- */

enum api_op api_op(const struct api *api)
{
	return api->row->op;
}

enum api_memory api_memory(const struct api *api)
{
	return api->row->memory;
}

bool api_is_async(const struct api *api)
{
	return api->row->flags & ASYNC;
}

bool api_is_narrow(const struct api *api)
{
	static const enum api_type wide[] = { T_PTR, T_DST, T_SRC, T_ADDR, T_SIZE, T_BYTES, T_U64 };

	for (size_t i = 0; i < api->n_pieces; i++) {
		const struct piece *piece = &api->piece[i];

		for (size_t j = 0; j < ARRAY_SIZE(wide); j++) {
			if (piece->type == wide[j] && piece->width == 4)
				return true;
		}
	}
	return false;
}

size_t api_args(const struct api *api, const struct api_arg **args)
{
	*args = api->arg;
	return api->n_args;
}

/* ---- names of values ----------------------------------------------------------------------- */

const char *api_class_name(enum api_class cls)
{
	return cls < CLASS_COUNT ? api_class_names[cls] : "other";
}

const char *api_direction_name(enum api_direction dir)
{
	return dir < DIRECTION_COUNT ? direction_names[dir] : direction_names[DIRECTION_NONE];
}

const char *api_memory_name(enum api_memory memory)
{
	return memory < MEMORY_COUNT ? memory_names[memory] : memory_names[MEMORY_NONE];
}

void api_to_text(const struct api *api, struct api_text *text)
{
	const struct api_row *row = api->row;

	*text = (struct api_text){
		.name = row->name,
		.spec = row->spec,
		.cls = row->cls,
		.op = row->op,
		.memory = row->memory,
		.direction = row->direction,
		.flags = row->flags,
	};
}

static bool is_same(const struct api_text *text, const struct api_row *row)
{
	return !strcmp(text->spec, row->spec) && text->cls == row->cls && text->op == row->op &&
	       text->memory == row->memory && text->direction == row->direction &&
	       text->flags == row->flags;
}

static uint8_t known(uint32_t value, uint32_t count, uint8_t otherwise)
{
	return value < count ? (uint8_t)value : otherwise;
}

const struct api *api_from_text(const struct api_text *text, struct api **made)
{
	const struct api *built_in = api_find(text->name);
	struct api_row *row;

	*made = NULL;
	if (built_in && !strcmp(built_in->row->name, text->name) && is_same(text, built_in->row))
		return built_in;
	row = xcalloc(1, sizeof(*row));
	*row = (struct api_row){
		.name = xstrdup(text->name),
		.spec = xstrdup(text->spec),
		.cls = known(text->cls, CLASS_COUNT, CLASS_OTHER),
		.op = known(text->op, OP_COUNT, OP_NONE),
		.memory = known(text->memory, MEMORY_COUNT, MEMORY_NONE),
		.direction = known(text->direction, DIRECTION_COUNT, DIRECTION_NONE),
		.flags = (uint8_t)text->flags,
	};
	*made = xcalloc(1, sizeof(**made));
	api_parse(*made, row); /* what came before a mistake is kept */
	return *made;
}

void api_free(struct api *made)
{
	if (!made)
		return;
	free((char *)made->row->name);
	free((char *)made->row->spec);
	free((struct api_row *)made->row);
	free(made);
}
