// SPDX-License-Identifier: MIT
/*
 * What can be told of a function from its name alone, so that one that came with a newer CUDA is
 * filed and switched as its relatives are.
 */
#include "cuda/row.h"

#include <string.h>

#include "base/array.h"

/* Class by the beginning of the name behind cu, cuda or __cuda; the first that fits. */
static const struct {
	const char *begin;
	enum api_class cls;
} beginnings[] = {
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

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static const char *behind_prefix(const char *base)
{
	static const char *const prefixes[] = { "__cuda", "cuda", "cu" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (begins(base, prefixes[i]))
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
	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
		if (begins(name, beginnings[i].begin))
			return beginnings[i].cls;
	return CLASS_OTHER;
}

bool guess_default_on(const char *base)
{
	const char *name = behind_prefix(base);

	for (size_t i = 0; i < ARRAY_SIZE(off_beginnings); i++)
		if (begins(base, off_beginnings[i]))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(on_words); i++)
		if (strstr(name, on_words[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(off_words); i++)
		if (has_word(name, off_words[i]))
			return false;
	return true;
}
