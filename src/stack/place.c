// SPDX-License-Identifier: MIT
#include "stack/place.h"

#include <string.h>

#include "base/array.h"
#include "cuda/api.h"

/* Bytes of a name that are looked at: behind as much no function of those below begins, and a file
 * can have names of many kilobytes. */
#define BARE_MAX 1024

/*
 * Where the name begins: templates have their return type before it. Blanks in brackets belong to
 * arguments or to "(anonymous namespace)".
 */
static const char *bare_name(const char *function)
{
	static const char anonymous[] = "(anonymous namespace)";
	const char *start = function;
	int depth = 0;

	for (const char *at = function; *at && at < function + BARE_MAX; at++) {
		if (!depth && *at == '(' && !strncmp(at, anonymous, sizeof(anonymous) - 1)) {
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
