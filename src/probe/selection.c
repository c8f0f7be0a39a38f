// SPDX-License-Identifier: MIT
#include "probe/selection.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "cuda/kernel_name.h"
#include "probe/fold_plan.h"

bool selection_matches(const char *glob, const char *name)
{
	return name_match_function(glob, name);
}

static bool any_matches(const char *const *globs, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (selection_matches(globs[i], name))
			return true;
	}
	return false;
}

/*
 * Captured launches and names of kernels are understood through these, wanted or not. A process
 * that loads PyTorch registers 22,000 kernels. That is paid for only when launches are looked at in
 * the runtime, where a kernel may be known by its host stub alone.
 */
static bool is_support(const struct selection *s, const struct api *api, enum api_layer layer)
{
	switch (api_op(api)) {
	case OP_CAPTURE_BEGIN:
	case OP_CAPTURE_END:
	case OP_EVENT_RECORD:
	case OP_EVENT_WAIT:
	case OP_MODULE_UNLOAD:
		return true;
	case OP_NAME_KERNEL:
		return layer == LAYER_RUNTIME && s->layers != LAYERS_DRIVER &&
		       (s->layers == LAYERS_RUNTIME || s->layers == LAYERS_BOTH || s->n_only ||
		        s->failed);
	default:
		return false;
	}
}

static bool layer_wanted(enum layer_choice layers, enum api_layer layer)
{
	return layers == LAYERS_DRIVER    ? layer == LAYER_DRIVER
	       : layers == LAYERS_RUNTIME ? layer == LAYER_RUNTIME
	                                  : true;
}

/* The launches that there are many of; agents tell of these with all their arguments. */
static bool agents_tell(const char *name)
{
	static const char *const names[] = { "cuLaunchKernel", "cuLaunchKernelEx",
		                             "cuLaunchCooperativeKernel" };

	return any_matches(names, ARRAY_SIZE(names), name);
}

static enum hook_group wanted_group(const struct selection *s, const char *name,
                                    enum api_layer layer, const char **why)
{
	const struct api *api = api_find(name);
	bool launch = api && (api_op(api) == OP_LAUNCH || api_op(api) == OP_GRAPH_LAUNCH);

	if (any_matches(s->skip, s->n_skip, name)) {
		*why = "--skip";
		return HOOK_OFF;
	}
	if (s->n_only) {
		*why = "--only";
		return any_matches(s->only, s->n_only, name) ? HOOK_CORE : HOOK_OFF;
	}
	if (s->classes && !(s->classes & 1u << api_class(name))) {
		*why = "--class";
		return HOOK_OFF;
	}
	if (!layer_wanted(s->layers, layer)) {
		*why = "--layer";
		return HOOK_OFF;
	}
	if (!api_default_on(name)) {
		*why = "tells little: --all-calls hooks it";
		return s->all_calls ? HOOK_LITTLE : HOOK_OFF;
	}
	if (s->layers == LAYERS_AUTO && layer == LAYER_RUNTIME && launch && !s->failed) {
		*why = "launches are seen in the driver";
		return HOOK_RUNTIME_LAUNCH;
	}
	if (s->agents && s->layers == LAYERS_AUTO && agents_tell(name))
		return HOOK_LAUNCH;
	return HOOK_CORE;
}

/* What is summed up in the kernel is chosen by what it does. */
static enum hook_group fold_group(const struct selection *s, const struct api *api,
                                  enum api_layer layer, const char **why)
{
	enum api_op op = api ? api_op(api) : OP_NONE;
	bool memory = op == OP_ALLOC || op == OP_FREE;

	*why = "nothing that is summed up";
	if (!(fold_ops(s->fold) & 1u << op))
		return HOOK_OFF;
	if (memory && !(fold_memories(s->fold, op) & 1u << api_memory(api)))
		return HOOK_OFF;
	if (op == OP_NAME_KERNEL)
		return layer == LAYER_DRIVER ? HOOK_SUPPORT : HOOK_OFF;
	*why = NULL;
	if (layer == LAYER_RUNTIME && (op == OP_LAUNCH || op == OP_GRAPH_LAUNCH))
		return HOOK_RUNTIME_LAUNCH;
	return op == OP_MODULE_UNLOAD ? HOOK_SUPPORT : HOOK_CORE;
}

enum hook_group selection_group(const struct selection *selection, const char *name,
                                enum api_layer layer, const char **why)
{
	const struct api *api = api_find(name);
	enum hook_group group;

	*why = NULL;
	if (selection->none)
		return HOOK_OFF;
	if (selection->fold)
		return fold_group(selection, api, layer, why);
	group = wanted_group(selection, name, layer, why);
	if (group == HOOK_OFF && api && is_support(selection, api, layer)) {
		*why = "needed to tell captured launches and names of kernels";
		return HOOK_SUPPORT;
	}
	return group;
}

#define LOOK_BYTES 65536u /* of notes and of data, each */

/* ---- functions ------------------------------------------------------------------------------ */

static const char keeps[] =
	"it keeps its return address for later, when a return probe's would end "
	"the program";
static const char throws[] = "exceptions begin in it, and none gets past a return probe";
static const char asks[] = "it asks who has called it, which a return probe hides";

static const struct {
	const char *symbol, *why;
} functions[] = {
	{ "setjmp", keeps },
	{ "_setjmp", keeps },
	{ "sigsetjmp", keeps },
	{ "__sigsetjmp", keeps },
	{ "getcontext", keeps },
	{ "swapcontext", keeps },
	{ "__cxa_throw", throws },
	{ "__cxa_rethrow", throws },
	{ "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE", throws },
	{ "_Unwind_RaiseException", throws },
	{ "_Unwind_Resume_or_Rethrow", throws },
	{ "_Unwind_ForcedUnwind", throws },
	{ "_Unwind_Backtrace", asks },
	{ "backtrace", asks },
	{ "dlopen", asks },
	{ "dlmopen", asks },
	{ "dlsym", asks },
	{ "dlvsym", asks },
};

const char *no_return_for_symbol(const char *symbol)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (!strcmp(symbol, functions[i].symbol))
			return functions[i].why;
	return NULL;
}

/* ---- Go ------------------------------------------------------------------------------------- */

/* A note of the owner "Go", which has the build's id. */
static bool has_go_note(const char *at, size_t bytes)
{
	struct elf_note note;

	while (elf_note_next(&at, &bytes, &note)) /* its name has two NULs */
		if (note.owner_bytes == 4 && !memcmp(note.owner, "Go\0", 4))
			return true;
	return false;
}

/* What the linker writes before the versions of what was built in, at the begin of the data. */
static bool has_build_info(const char *at, size_t bytes)
{
	static const char magic[] = "\xff Go buildinf:";

	return memmem(at, bytes, magic, sizeof(magic) - 1) != NULL;
}

/* Also of files without section headers. */
static bool is_in_segments(const struct elf_image *image)
{
	AT_END(at_end_free) char *part = xmalloc(LOOK_BYTES);
	bool found = false;

	for (size_t i = 0; i < image->n_segments && !found; i++) {
		const Elf64_Phdr *segment = &image->segments[i];
		size_t n = segment->p_filesz < LOOK_BYTES ? segment->p_filesz : LOOK_BYTES;
		bool data = segment->p_type == PT_LOAD && (segment->p_flags & PF_W);

		if ((!data && segment->p_type != PT_NOTE) || !n ||
		    !elf_image_read(image, segment->p_offset, part, n))
			continue;
		found = data ? has_build_info(part, n) : has_go_note(part, n);
	}
	return found;
}

const char *no_return_for_file(const struct elf_image *image)
{
	static const char *const sections[] = { ".go.buildinfo", ".note.go.buildid", ".gopclntab" };
	bool found = is_in_segments(image);
	Elf64_Shdr section;

	for (size_t i = 0; i < ARRAY_SIZE(sections) && !found; i++)
		found = elf_image_section(image, sections[i], &section);
	return found ? "it is of a file with code of Go, which moves its stacks, and a return "
	               "probe "
	               "would end the program"
	             : NULL;
}
