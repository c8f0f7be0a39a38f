// SPDX-License-Identifier: MIT
#include "analysis/place.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "base/array.h"
#include "base/map.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "stack/place.h"

#define COMPILED_LETTERS 52

static bool has_any(const char *text, const char *const parts[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strstr(text, parts[i]))
			return true;
	return false;
}

/* ---- Python ---------------------------------------------------------------------------------- */

/* torch.compile's code, named by a hash: "c", 51 letters of base 32 and ".py", wherever its cache
 * is. */
static bool is_compiled_file(const char *file)
{
	const char *name = place_file(file);

	return name[0] == 'c' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz234567") == COMPILED_LETTERS &&
	       !strcmp(name + COMPILED_LETTERS, ".py");
}

static bool is_library_file(const char *file)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/",
		                               "/lib/python3.", "/lib64/python3." };

	return has_any(file, folders, ARRAY_SIZE(folders)) || !strncmp(file, "<frozen ", 8) ||
	       is_compiled_file(file);
}

static enum place_rank rank_of_python(const struct stack_frame *frame)
{
	if (!frame->function) /* it could not be read */
		return PLACE_SYSTEM;
	return frame->file && is_library_file(frame->file) ? PLACE_PYTHON_LIBRARY : PLACE_PYTHON;
}

static bool is_package(const char *name, size_t length, const char *const names[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(names[i]) == length && !strncmp(names[i], name, length))
			return true;
	return false;
}

size_t place_package(const struct stack_frame *frame, const char **name)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/" };
	static const char *const others[] = { "torch" };
	size_t length;

	*name = NULL;
	for (size_t i = 0; frame->file && i < ARRAY_SIZE(folders); i++) {
		const char *at = strstr(frame->file, folders[i]);

		if (at && (!*name || at > *name))
			*name = at + strlen(folders[i]);
	}
	if (!*name)
		return 0;
	length = strcspn(*name, "/");
	if (!(*name)[length] || is_package(*name, length, others, ARRAY_SIZE(others)))
		return 0;
	return length;
}

bool place_package_loops(const char *name, size_t length)
{
	static const char *const loops[] = {
		"pytorch_lightning",
		"lightning",
		"accelerate",
		"transformers",
		"diffusers",
		"trl",
		"peft",
		"unsloth",
		"fastai",
		"keras",
		"composer",
		"deepspeed",
		"megatron",
		"nemo",
		"verl",
		"torchtune",
		"vllm",
		"sglang",
		"ray",
		"sentence_transformers",
	};

	return is_package(name, length, loops, ARRAY_SIZE(loops));
}

/* ---- native code ----------------------------------------------------------------------------- */

static bool begins_with_any(const char *name, const char *const begins[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	return false;
}

/* And what cuscope itself puts in the way of its calls. */
static const char *const cuda[] = { "libcuda.",  "libcudart",   "libnvidia-",
	                            "libcupti.", "libcuscope-", "[uprobes]" };

static const char *const frameworks[] = {
	"libtorch",  "libc10",          "libtensorflow",
	"_pywrap_",  "libjax",          "_jax.",
	"xla_",      "libonnxruntime.", "libcupy",
	"libtriton", "libcublas",       "libcudnn",
	"libcufft",  "libcusparse",     "libcusolver",
	"libnccl",   "libnvrtc",        "cuda_plugin_extension",
	"libgomp",   "libiomp",         "libomp",
	"libmkl",    "libopenblas",     "libtbb",
};

bool place_is_jax(const struct stack_frame *frame)
{
	static const char *const modules[] = { "libjax", "_jax." };

	if (frame->kind == FRAME_PYTHON)
		return frame->file && strstr(frame->file, "/jax/_src/");
	return frame->module && begins_with_any(frame->module, modules, ARRAY_SIZE(modules));
}

/* With cuDNN's engines that are compiled when a shape comes for the first time, it is nvrtc that
 * runs. */
static const char *const compilers[] = {
	"libnvrtc",         "libnvJitLink", "libnvvm", "libnvidia-nvvm", "libtriton", "libLLVM",
	"libnvidia-ptxjit", "ptxas",        "nvlink",  "cicc",           "cudafe++",  "cc1plus"
};

enum place_compiler place_compiler(const struct stack_frame *frame)
{
	static const char *const files[] = { "/torch/_dynamo/convert_frame.py", "/triton/compiler/",
		                             "/jax/_src/compiler.py", "/numba/core/compiler",
		                             "/cupy/cuda/compiler.py" };
	static const char *const folders[] = {
		"/torch/_dynamo/", "/torch/_inductor/", "/torch/nn/modules/module.py",
		"/triton/",        "/jax/_src/",        "/numba/",
		"/cupy/"
	};

	if (frame->kind != FRAME_PYTHON)
		return frame->module && begins_with_any(frame->module, compilers,
		                                        ARRAY_SIZE(compilers))
		               ? PLACE_COMPILER
		               : PLACE_NO_COMPILER;
	if (!frame->file)
		return PLACE_NO_COMPILER;
	if (has_any(frame->file, files, ARRAY_SIZE(files)))
		return PLACE_COMPILER;
	return has_any(frame->file, folders, ARRAY_SIZE(folders)) ? PLACE_TO_COMPILER
	                                                          : PLACE_NO_COMPILER;
}

/* Of the system, the compiler and CUDA: functions of their headers are inlined everywhere. */
static const char *const header_folders[] = { "/usr/include/", "/include/c++/", "/lib/gcc/",
	                                      "-linux/include/", "/cuda/include/" };

static bool is_library_header(const char *file)
{
	return has_any(file, header_folders, ARRAY_SIZE(header_folders));
}

/* "[": the vdso, and memory of no file */
static const char *const system_modules[] = { "libc.so",    "libc-",   "libm.so",   "libm-",
	                                      "libpthread", "libdl",   "librt",     "libstdc++",
	                                      "libgcc_s",   "ld-",     "libpython", "_ctypes",
	                                      "libffi",     "python3", "[" };

/* Begins of programs that are in their own file. */
static bool is_begin(const char *function)
{
	return !strcmp(function, "_start") || !strcmp(function, "__libc_start_main") ||
	       !strcmp(function, "__libc_start_call_main");
}

static enum place_rank rank_of_native(const struct stack_frame *frame)
{
	const char *module = frame->module;

	if (frame->function && place_passes_on(frame->function))
		return PLACE_CUDA;
	if (frame->function && is_begin(frame->function))
		return PLACE_SYSTEM;
	if (!module)
		return frame->function ? PLACE_NATIVE : PLACE_SYSTEM;
	if (begins_with_any(module, cuda, ARRAY_SIZE(cuda)))
		return PLACE_CUDA;
	if (frame->kind == FRAME_JIT)
		return frame->function ? PLACE_NATIVE : PLACE_SYSTEM;
	if (begins_with_any(module, system_modules, ARRAY_SIZE(system_modules)))
		return PLACE_SYSTEM;
	if (begins_with_any(module, frameworks, ARRAY_SIZE(frameworks)) ||
	    (frame->file && is_library_header(frame->file)))
		return PLACE_FRAMEWORK;
	return PLACE_NATIVE;
}

enum place_rank place_rank(const struct stack_frame *frame)
{
	switch (frame->kind) {
	case FRAME_PYTHON:
		return rank_of_python(frame);
	case FRAME_NATIVE:
	case FRAME_JIT:
		return rank_of_native(frame);
	case FRAME_CUDA:
		return PLACE_CUDA;
	default:
		return PLACE_KERNEL;
	}
}

const struct stack_frame *place_of(const struct stack *stack)
{
	const struct stack_frame *place = NULL;
	enum place_rank best = PLACE_COUNT;

	if (!stack)
		return NULL;
	for (size_t i = 0; i < stack->n_frames && best != PLACE_PYTHON; i++) {
		enum place_rank rank = place_rank(stack->frames[i]);

		if (rank < best) {
			best = rank;
			place = stack->frames[i];
		}
	}
	return place;
}

const char *place_file(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

void place_label(const struct stack_frame *frame, struct buf *out)
{
	if (!frame) {
		buf_puts(out, PLACE_NO_STACK);
		return;
	}
	if (!frame->function && frame->module) {
		buf_printf(out, "%s+0x%lx", frame->module, frame->offset);
		return;
	}
	buf_puts(out, frame->function ? frame->function : "[unknown]");
	if (frame->file && frame->line)
		buf_printf(out, " (%s:%u)", place_file(frame->file), frame->line);
	else if (frame->file)
		buf_printf(out, " (%s)", place_file(frame->file));
	else if (frame->module)
		buf_printf(out, " (%s)", frame->module);
}

/* ---- places of many stacks ------------------------------------------------------------------- */

struct labelled {
	uint32_t number;
	char *label;
	UT_hash_handle hh;
};

struct stack_places {
	struct labelled *by_label;
	struct labelled **all; /* by number */
	size_t count;
	uint32_t *numbers; /* by the stack's id; the number and 1, 0: not looked at yet */
	size_t n_numbers;
	struct buf text;
};

uint32_t stack_places_number_of(struct stack_places *places, const char *label)
{
	size_t len = strlen(label);
	struct labelled *place = MAP_FIND_BYTES(places->by_label, label, len);

	if (place)
		return place->number;
	place = xcalloc(1, sizeof(*place));
	place->number = (uint32_t)places->count;
	place->label = xstrdup(label);
	HASH_ADD_KEYPTR(hh, places->by_label, place->label, len, place);
	*VEC_ADD(places->all, places->count) = place;
	return place->number;
}

struct stack_places *stack_places_new(void)
{
	struct stack_places *places = xcalloc(1, sizeof(*places));

	stack_places_number_of(places, PLACE_NO_STACK);
	return places;
}

void stack_places_free(struct stack_places *places)
{
	if (!places)
		return;
	HASH_CLEAR(hh, places->by_label);
	for (size_t i = 0; i < places->count; i++) {
		free(places->all[i]->label);
		free(places->all[i]);
	}
	free(places->all);
	free(places->numbers);
	buf_free(&places->text);
	free(places);
}

uint32_t stack_places_number(struct stack_places *places, const struct stack *stack)
{
	uint32_t *number;

	if (!stack)
		return 0;
	number = BY_ID(places->numbers, places->n_numbers, stack->id);
	if (!*number) {
		buf_reset(&places->text);
		place_label(place_of(stack), &places->text);
		*number = stack_places_number_of(places, places->text.data) + 1;
	}
	return *number - 1;
}

const char *stack_places_label(const struct stack_places *places, uint32_t number)
{
	return places->all[number]->label;
}

size_t stack_places_count(const struct stack_places *places)
{
	return places->count;
}
