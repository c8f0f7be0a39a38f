// SPDX-License-Identifier: MIT
#include "stack/place.h"

#include <string.h>

#include "base/array.h"
#include "cuda/api.h"

/* ---- names ----------------------------------------------------------------------------------- */

/*
 * Where the name begins: templates have their return type before it. Blanks in brackets belong to
 * arguments or to "(anonymous namespace)".
 */
static const char *bare_name(const char *function)
{
	static const char anonymous[] = "(anonymous namespace)";
	const char *start = function;
	int depth = 0;

	for (const char *at = function; *at; at++) {
		if (!depth && !strncmp(at, anonymous, sizeof(anonymous) - 1)) {
			at += sizeof(anonymous) - 2;
			continue;
		}
		if (!depth && *at == '(')
			break;
		depth += *at == '<' || *at == '(';
		depth -= depth && (*at == '>' || *at == ')');
		if (!depth && *at == ' ')
			start = at + 1;
	}
	return start;
}

/*
 * Allocators that stand between CUDA and those who want memory. A name that ends in "::" stands for
 * a whole namespace or class.
 */
static const char *const wrappers[] = {
	"c10::cuda::CUDACachingAllocator::", /* PyTorch */
	"c10::cuda::MemPool::",
	"c10::CachingHostAllocator",
	"at::CachingHostAllocator",
	"at::cuda::CachingHostAllocator",
	"at::cuda::getCUDADeviceAllocator",
	"at::cuda::(anonymous namespace)::CUDAHostAllocator",
	"tsl::BFCAllocator::", /* TensorFlow, JAX */
	"tensorflow::BFCAllocator::",
	"tensorflow::SubAllocator",
	"stream_executor::",
	"xla::ffi::",
	"onnxruntime::BFCArena::",
	"onnxruntime::CUDAAllocator::",
	"onnxruntime::CUDAPinnedAllocator::",
	"rmm::", /* RAPIDS */
	"cub::CachingDeviceAllocator::",
	"thrust::", /* CUDA's C++ headers */
	"cuda::mr::",
	"cuda::__4::",
	"cv::cuda::GpuMat::", /* OpenCV */
	"ggml_cuda_device_malloc",
	"ggml_backend_cuda_buffer_type_alloc_buffer",
	"libcudart_static_", /* the runtime, linked in */
};

bool place_is_wrapper(const char *function)
{
	const char *name = bare_name(function);

	for (size_t i = 0; i < ARRAY_SIZE(wrappers); i++)
		if (!strncmp(name, wrappers[i], strlen(wrappers[i])))
			return true;
	return false;
}

/* cudaMalloc, and the template of that name in CUDA's headers. */
static bool is_api(const char *function)
{
	const char *name = bare_name(function);
	char text[128];
	size_t len = strcspn(name, "<(");

	if (len >= sizeof(text))
		return false;
	memcpy(text, name, len);
	text[len] = '\0';
	return api_is_symbol(text);
}

bool place_passes_on(const char *function)
{
	return is_api(function) || place_is_wrapper(function);
}

/* "[uprobes]": where a traced call returns to on kernels before 6.11 */
static const char *const own_modules[] = { "libcudart.so", "libcuda.so", "libnvidia-",
	                                   "[uprobes]" };

static bool is_own(const struct frame *frame)
{
	for (size_t i = 0; i < ARRAY_SIZE(own_modules); i++)
		if (!strncmp(frame->module, own_modules[i], strlen(own_modules[i])))
			return true;
	return frame->function && place_passes_on(frame->function);
}

/* ---- where stacks end ------------------------------------------------------------------------ */

/* What calls main, and what threads begin with. */
static const char *const roots[] = {
	"_start",
	"__libc_start_main",
	"__libc_start_call_main",
	"__libc_start_main_impl",
	"start_thread",
	"__clone3",
	"clone3",
	"__clone",
	"clone",
	"thread_start",
};

static const char *const c_libraries[] = { "libc.so.", "libc-", "libpthread", "ld-musl-" };

/*
 * The C library's beginning of programs and threads is not exported: where nothing tells names, a
 * frame in it is taken for that. Its functions that call back (qsort) have names.
 */
static bool is_root(const struct frame *frame)
{
	if (frame->function) {
		for (size_t i = 0; i < ARRAY_SIZE(roots); i++)
			if (!strcmp(frame->function, roots[i]))
				return true;
		return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(c_libraries); i++)
		if (!strncmp(frame->module, c_libraries[i], strlen(c_libraries[i])))
			return true;
	return false;
}

void place_find(const struct frame *frames, size_t count, bool deep, struct place *place)
{
	const struct frame *last;

	memset(place, 0, sizeof(*place));
	while (place->frames < count && frames[place->frames].module)
		place->frames++;
	while (place->named < place->frames && is_own(&frames[place->named]))
		place->named++;
	if (place->named == place->frames)
		place->named = 0;
	if (!place->frames)
		return;
	last = &frames[place->frames - 1];
	place->whole = is_root(last);
	place->deep = deep && place->frames == count && !place->whole;
	if (!place->whole && !place->deep)
		place->ends_in = last->module;
}
