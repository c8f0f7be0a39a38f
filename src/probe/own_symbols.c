// SPDX-License-Identifier: MIT
#include "probe/own_symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/order.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "probe/bpf_call.h"

#define SYMBOLS_MAX (1u << 21) /* a kernel has 200,000 */

struct own_symbols {
	struct own_symbol *list; /* sorted by name */
	size_t n;
	bool has_traceable, has_forbidden; /* these lists could be read */
};

bool own_symbols_is_module(const char *wanted, const char *module)
{
	for (; *wanted && *module; wanted++, module++) {
		if ((*wanted == '-' ? '_' : *wanted) != (*module == '-' ? '_' : *module))
			return false;
	}
	return !*wanted && !*module;
}

bool own_symbols_is_loaded(const char *module)
{
	char path[512], *at;

	if (!strcmp(module, "vmlinux"))
		return true;
	snprintf(path, sizeof(path), "/sys/module/%s", module);
	for (at = path + strlen("/sys/module/"); *at; at++) {
		if (*at == '-')
			*at = '_';
		if (*at == '/')
			return false;
	}
	return !access(path, F_OK);
}

const char *own_symbols_refused(void)
{
	char text[128];

	if (file_line("/sys/kernel/security/lockdown", text, sizeof(text)) &&
	    strstr(text, "[confidentiality]"))
		return "the kernel is locked down (confidentiality): it lets nobody probe it";
	if (access("/sys/bus/event_source/devices/kprobe/type", F_OK))
		return "this kernel has no kprobes (CONFIG_KPROBE_EVENTS)";
	return NULL;
}

/* "ffffffffc0a1b2c3 t nvidia_open	[nvidia]" */
static bool read_line(char *line, struct own_symbol *symbol)
{
	char *rest = NULL, *type, *name, *module;

	strtok_r(line, " \t\n", &rest);
	type = strtok_r(NULL, " \t\n", &rest);
	name = strtok_r(NULL, " \t\n", &rest);
	module = strtok_r(NULL, " \t\n", &rest);
	if (!name || !strchr("tTwW", type[0]) || !strncmp(name, "__pfx_", 6) ||
	    !strncmp(name, "__cfi_", 6) || strstr(name, ".cold") || strchr(name, '$'))
		return false;
	symbol->name = xstrdup(name);
	symbol->module = xstrdup("vmlinux");
	if (module && module[0] == '[' && strlen(module) > 2) {
		free((char *)symbol->module);
		symbol->module = xstrndup(module + 1, strlen(module) - 2);
	}
	symbol->traceable = true;
	return true;
}

ORDER_BY(compare_symbols, struct own_symbol, BY_TEXT(name));

static void mark(struct own_symbols *symbols, const char *name, bool traceable, bool forbidden)
{
	struct own_symbol key = { .name = name }, *at;

	at = bsearch(&key, symbols->list, symbols->n, sizeof(key), compare_symbols);
	if (!at)
		return;
	while (at > symbols->list && !strcmp(at[-1].name, name))
		at--;
	for (; at < symbols->list + symbols->n && !strcmp(at->name, name); at++) {
		at->traceable |= traceable;
		at->forbidden |= forbidden;
	}
}

/* One name a line, with more behind it; the list is believed only if it can be read. */
static void read_traceable(struct own_symbols *symbols)
{
	int fd = tracefs_open("available_filter_functions");
	AT_END(at_end_fclose) FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
	char *line = NULL;
	size_t room = 0, n = 0;

	if (!file && fd >= 0)
		close(fd);
	symbols->has_traceable = file != NULL;
	while (file && getline(&line, &room, file) > 0) {
		if (!n++) {
			for (size_t i = 0; i < symbols->n; i++)
				symbols->list[i].traceable = false;
		}
		line[strcspn(line, " \t\n")] = '\0';
		mark(symbols, line, true, false);
	}
	free(line);
}

/* "0xffffffff81000000-0xffffffff81000010	do_int3" */
static void read_forbidden(struct own_symbols *symbols)
{
	AT_END(at_end_fclose) FILE *file = fopen("/sys/kernel/debug/kprobes/blacklist", "re");
	char *line = NULL;
	size_t room = 0;

	symbols->has_forbidden = file != NULL;
	while (file && getline(&line, &room, file) > 0) {
		char *name = strchr(line, '\t');

		if (!name)
			continue;
		name[strcspn(name, "\n")] = '\0';
		mark(symbols, name + 1, false, true);
	}
	free(line);
}

const char *own_symbols_unread(const struct own_symbols *symbols)
{
	if (!symbols->has_traceable && !symbols->has_forbidden)
		return "neither available_filter_functions nor kprobes/blacklist can be read, so "
		       "the kernel may refuse some of these";
	if (!symbols->has_traceable)
		return "available_filter_functions cannot be read, so the kernel may refuse some "
		       "of these";
	if (!symbols->has_forbidden)
		return "kprobes/blacklist cannot be read, so the kernel may refuse some of these";
	return NULL;
}

struct own_symbols *own_symbols_new(void)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	struct own_symbols *symbols;
	struct own_symbol symbol;
	char *line = NULL;
	size_t room = 0;

	if (!file)
		return NULL;
	symbols = xcalloc(1, sizeof(*symbols));
	while (symbols->n < SYMBOLS_MAX && getline(&line, &room, file) > 0) {
		symbol = (struct own_symbol){ 0 };
		if (!read_line(line, &symbol))
			continue;
		symbols->list = vec_room(symbols->list, symbols->n, sizeof(symbol));
		symbols->list[symbols->n++] = symbol;
	}
	free(line);
	fclose(file);
	if (symbols->n)
		qsort(symbols->list, symbols->n, sizeof(*symbols->list), compare_symbols);
	read_traceable(symbols);
	read_forbidden(symbols);
	return symbols;
}

void own_symbols_free(struct own_symbols *symbols)
{
	for (size_t i = 0; symbols && i < symbols->n; i++) {
		free((char *)symbols->list[i].name);
		free((char *)symbols->list[i].module);
	}
	if (symbols)
		free(symbols->list);
	free(symbols);
}

size_t own_symbols_list(const struct own_symbols *symbols, const struct own_symbol **list)
{
	*list = symbols ? symbols->list : NULL;
	return symbols ? symbols->n : 0;
}
