// SPDX-License-Identifier: MIT
/* Names of results: those that the simulated driver can return. */
#include "gate.h"

#define ERROR_NAMES(X)                                                                             \
	X(CUDA_SUCCESS, "no error")                                                                \
	X(CUDA_ERROR_INVALID_VALUE, "invalid argument")                                            \
	X(CUDA_ERROR_OUT_OF_MEMORY, "out of memory")                                               \
	X(CUDA_ERROR_NOT_INITIALIZED, "initialization error")                                      \
	X(CUDA_ERROR_DEINITIALIZED, "driver shutting down")                                        \
	X(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected")                              \
	X(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal")                                     \
	X(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid")                              \
	X(CUDA_ERROR_INVALID_CONTEXT, "invalid device context")                                    \
	X(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed")                                  \
	X(CUDA_ERROR_FILE_NOT_FOUND, "file not found")                                             \
	X(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle")                                    \
	X(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state")      \
	X(CUDA_ERROR_NOT_FOUND, "named symbol not found")                                          \
	X(CUDA_ERROR_NOT_READY, "device not ready")                                                \
	X(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")                  \
	X(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed")                                 \
	X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part of the memory is already registered")   \
	X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "the memory is not registered")                   \
	X(CUDA_ERROR_NOT_SUPPORTED, "operation not supported")                                     \
	X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,                                                   \
	  "operation not permitted when stream is capturing")                                      \
	X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,                                                   \
	  "operation failed due to a previous error during capture")                               \
	X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work")                \
	X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,                                                     \
	  "dependency created on uncaptured work in another stream")                               \
	X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,                                                      \
	  "operation would make the legacy stream depend on a capturing blocking stream")          \
	X(CUDA_ERROR_CAPTURED_EVENT,                                                               \
	  "operation not permitted on an event last recorded in a capturing stream")               \
	X(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph update was not performed")              \
	X(CUDA_ERROR_UNKNOWN, "unknown error")

static const struct {
	int code;
	const char *name, *text;
} errors[] = {
#define ROW(code, text) { code, #code, text },
	ERROR_NAMES(ROW)
#undef ROW
};

static CUresult find(CUresult error, const char **to, bool name)
{
	if (!to)
		return CUDA_ERROR_INVALID_VALUE;
	*to = NULL;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].code == (int)error)
			*to = name ? errors[i].name : errors[i].text;
	}
	return *to ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API_ALWAYS(cuGetErrorName, (CUresult, error, const char **, name), find(error, name, true))
API_ALWAYS(cuGetErrorString, (CUresult, error, const char **, text), find(error, text, false))
