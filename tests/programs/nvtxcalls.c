// SPDX-License-Identifier: MIT
/* NVTX as nvtx.h describes it: the tables that calls go through, and who fills them. */
#include "nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* ---- what both sides know -------------------------------------------------------------------- */

typedef void (*function)(void);

enum module { MODULE_CORE = 1, MODULE_CORE2 = 5 };
enum { TABLE_CALLBACKS = 1, TABLE_VERSION = 3 };

/* Places in the table of MODULE_CORE. */
enum { MARK_A = 2, START_A = 5, END = 7, PUSH_A = 9, PUSH_W = 10, POP = 11, CORE_SIZE = 16 };

/* Places in the table of MODULE_CORE2. */
enum {
	DOMAIN_MARK = 1,
	DOMAIN_START = 2,
	DOMAIN_END = 3,
	DOMAIN_PUSH = 4,
	DOMAIN_POP = 5,
	DOMAIN_REGISTER_A = 10,
	DOMAIN_CREATE_A = 12,
	INITIALIZE = 15,
	CORE2_SIZE = 16
};

struct callbacks {
	size_t bytes;
	int (*table)(enum module module, function ***table, unsigned int *size);
};

struct version {
	size_t bytes;
	uint32_t version, reserved;
	void (*tool)(uint32_t version);
};

enum { MESSAGE_ASCII = 1, MESSAGE_REGISTERED = 3 };

struct attributes {
	uint16_t version, bytes;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	const void *message;
};

_Static_assert(sizeof(struct attributes) == 48, "as nvtxEventAttributes_t");

/* ---- the tables ------------------------------------------------------------------------------ */

static function core[CORE_SIZE], core2[CORE2_SIZE];
static function *core_table[CORE_SIZE + 1],
	*core2_table[CORE2_SIZE + 1]; /* 0 is none, and the end */
static bool ready;

static int module_table(enum module module, function ***table, unsigned int *size)
{
	if (module != MODULE_CORE && module != MODULE_CORE2)
		return 0;
	if (table)
		*table = module == MODULE_CORE ? core_table : core2_table;
	if (size)
		*size = module == MODULE_CORE ? CORE_SIZE : CORE2_SIZE;
	return 1;
}

static void tool_version(uint32_t version)
{
}

static const void *export_table(uint32_t id)
{
	static const struct callbacks callbacks = { sizeof(callbacks), module_table };
	static const struct version version = { sizeof(version), 3, 0, tool_version };

	if (id == TABLE_CALLBACKS)
		return &callbacks;
	return id == TABLE_VERSION ? (const void *)&version : NULL;
}

static void load(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*initialize)(const void *(*)(uint32_t)) = NULL;

	for (int i = 1; i < CORE_SIZE; i++)
		core_table[i] = &core[i];
	for (int i = 1; i < CORE2_SIZE; i++)
		core2_table[i] = &core2[i];
	if (library)
		initialize = (int (*)(const void *(*)(uint32_t)))dlsym(library,
		                                                       "InitializeInjectionNvtx2");
	ready = initialize && initialize(export_table) != 0;
	if (library && !ready)
		dlclose(library);
}

/* What a place holds, NULL where a call does nothing. */
static function core_function(int place)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return ready ? core[place] : NULL;
}

static function core2_function(int place)
{
	core_function(0);
	return ready ? core2[place] : NULL;
}

int nvtx_is_there(void)
{
	core_function(0);
	return ready;
}

/* ---- calls ----------------------------------------------------------------------------------- */

void nvtx_push(const char *text)
{
	int (*push)(const char *) = (int (*)(const char *))core_function(PUSH_A);
	if (push)
		push(text);
}

void nvtx_push_wide(const wchar_t *text)
{
	int (*push)(const wchar_t *) = (int (*)(const wchar_t *))core_function(PUSH_W);
	if (push)
		push(text);
}

void nvtx_pop(void)
{
	int (*pop)(void) = (int (*)(void))core_function(POP);
	if (pop)
		pop();
}

uint64_t nvtx_start(const char *text)
{
	uint64_t (*start)(const char *) = (uint64_t(*)(const char *))core_function(START_A);
	return start ? start(text) : 0;
}

void nvtx_end(uint64_t id)
{
	void (*end)(uint64_t) = (void (*)(uint64_t))core_function(END);
	if (end)
		end(id);
}

void nvtx_mark(const char *text)
{
	void (*mark)(const char *) = (void (*)(const char *))core_function(MARK_A);
	if (mark)
		mark(text);
}

/* ---- domains --------------------------------------------------------------------------------- */

nvtx_domain nvtx_domain_create(const char *name)
{
	nvtx_domain (*create)(const char *) =
		(nvtx_domain(*)(const char *))core2_function(DOMAIN_CREATE_A);
	return create ? create(name) : NULL;
}

nvtx_string nvtx_register(nvtx_domain domain, const char *text)
{
	nvtx_string (*reg)(nvtx_domain, const char *) =
		(nvtx_string(*)(nvtx_domain, const char *))core2_function(DOMAIN_REGISTER_A);
	return reg ? reg(domain, text) : NULL;
}

static struct attributes attributes(int type, const void *message)
{
	return (struct attributes){ .version = 3,
		                    .bytes = sizeof(struct attributes),
		                    .message_type = type,
		                    .message = message };
}

typedef uint64_t (*with_attributes)(nvtx_domain, const struct attributes *);

static uint64_t call(int place, nvtx_domain domain, int type, const void *message)
{
	with_attributes to = (with_attributes)core2_function(place);
	struct attributes event = attributes(type, message);
	return to ? to(domain, &event) : 0;
}

void nvtx_domain_push(nvtx_domain domain, const char *text)
{
	call(DOMAIN_PUSH, domain, MESSAGE_ASCII, text);
}

void nvtx_domain_push_registered(nvtx_domain domain, nvtx_string text)
{
	call(DOMAIN_PUSH, domain, MESSAGE_REGISTERED, text);
}

void nvtx_domain_pop(nvtx_domain domain)
{
	int (*pop)(nvtx_domain) = (int (*)(nvtx_domain))core2_function(DOMAIN_POP);
	if (pop)
		pop(domain);
}

uint64_t nvtx_domain_start(nvtx_domain domain, const char *text)
{
	return call(DOMAIN_START, domain, MESSAGE_ASCII, text);
}

void nvtx_domain_end(nvtx_domain domain, uint64_t id)
{
	void (*end)(nvtx_domain, uint64_t) =
		(void (*)(nvtx_domain, uint64_t))core2_function(DOMAIN_END);
	if (end)
		end(domain, id);
}

void nvtx_domain_mark(nvtx_domain domain, const char *text)
{
	call(DOMAIN_MARK, domain, MESSAGE_ASCII, text);
}
