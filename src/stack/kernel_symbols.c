// SPDX-License-Identifier: MIT
#include "stack/kernel_symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/vec.h"
#include "base/xalloc.h"

#define SYMBOLS_MAX  (2u << 20)
#define TEXT_MAX     ((size_t)128 << 20)
#define NO_MODULE    UINT32_MAX
#define FUNCTION_MAX (1u << 20) /* bytes; farther from its begin an address is of no function */

struct kernel_symbol {
	uint64_t address;
	uint32_t name, module; /* where they stand in the text */
};

struct kernel_symbols {
	struct kernel_symbol *symbols;
	size_t count;
	struct buf text;
	uint32_t last_module; /* its lines stand together */
};

static uint32_t keep(struct kernel_symbols *s, const char *text)
{
	uint32_t at = (uint32_t)s->text.len;

	buf_add(&s->text, text, strlen(text) + 1);
	return at;
}

/* "[nvidia]" without its brackets; the same as of the line before, as a rule. */
static uint32_t keep_module(struct kernel_symbols *s, char *name)
{
	char *end = strchr(name, ']');

	if (name[0] != '[' || !end)
		return NO_MODULE;
	*end = '\0';
	if (s->last_module == NO_MODULE || strcmp(s->text.data + s->last_module, name + 1) != 0)
		s->last_module = keep(s, name + 1);
	return s->last_module;
}

/* "ffffffff81000000 T _text" or "ffffffffc0a4e000 t nv_open [nvidia]" */
static void take_line(struct kernel_symbols *s, const char *line)
{
	char type, name[512], module[128] = "";
	struct kernel_symbol *symbol;
	uint64_t address;

	if (sscanf(line, "%" SCNx64 " %c %511s %127s", &address, &type, name, module) < 3)
		return;
	if (!address || !strchr("tTwW", type) || s->count == SYMBOLS_MAX || s->text.len > TEXT_MAX)
		return;
	s->symbols = vec_room(s->symbols, s->count, sizeof(*s->symbols));
	symbol = &s->symbols[s->count++];
	symbol->address = address;
	symbol->module = keep_module(s, module);
	symbol->name = keep(s, name);
}

static int compare(const void *left, const void *right)
{
	const struct kernel_symbol *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

struct kernel_symbols *kernel_symbols_read(FILE *from)
{
	struct kernel_symbols *s = xcalloc(1, sizeof(*s));
	char line[1024];

	s->last_module = NO_MODULE;
	while (fgets(line, sizeof(line), from))
		take_line(s, line);
	if (s->count)
		qsort(s->symbols, s->count, sizeof(*s->symbols), compare);
	return s;
}

struct kernel_symbols *kernel_symbols_of_this_kernel(void)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	struct kernel_symbols *s;

	if (!file)
		return xcalloc(1, sizeof(struct kernel_symbols));
	s = kernel_symbols_read(file);
	fclose(file);
	return s;
}

void kernel_symbols_free(struct kernel_symbols *s)
{
	if (!s)
		return;
	free(s->symbols);
	buf_free(&s->text);
	free(s);
}

size_t kernel_symbols_count(const struct kernel_symbols *s)
{
	return s->count;
}

bool kernel_symbols_find(const struct kernel_symbols *s, uint64_t address,
                         struct kernel_function *function)
{
	const struct kernel_symbol *symbol;
	size_t low = ARRAY_BEFORE(s->count, i, s->symbols[i].address <= address);

	if (!low || address - s->symbols[low - 1].address > FUNCTION_MAX)
		return false;
	symbol = &s->symbols[low - 1];
	function->name = s->text.data + symbol->name;
	function->module = symbol->module == NO_MODULE ? NULL : s->text.data + symbol->module;
	function->into_bytes = address - symbol->address;
	return true;
}
