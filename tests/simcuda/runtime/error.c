// SPDX-License-Identifier: MIT
/* Names of results: those that the simulated runtime and driver can return. */
#include "runtime.h"

static const struct {
	int code;
	const char *name, *text;
} errors[] = {
	{ 0, "cudaSuccess", "no error" },
	{ 1, "cudaErrorInvalidValue", "invalid argument" },
	{ 2, "cudaErrorMemoryAllocation", "out of memory" },
	{ 3, "cudaErrorInitializationError", "initialization error" },
	{ 4, "cudaErrorCudartUnloading", "driver shutting down" },
	{ 9, "cudaErrorInvalidConfiguration", "invalid configuration argument" },
	{ 12, "cudaErrorInvalidPitchValue", "invalid pitch argument" },
	{ 13, "cudaErrorInvalidSymbol", "invalid device symbol" },
	{ 17, "cudaErrorInvalidDevicePointer", "invalid device pointer" },
	{ 21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy" },
	{ 35, "cudaErrorInsufficientDriver",
	  "CUDA driver version is insufficient for CUDA runtime version" },
	{ 52, "cudaErrorMissingConfiguration", "missing launch configuration" },
	{ 98, "cudaErrorInvalidDeviceFunction", "invalid device function" },
	{ 100, "cudaErrorNoDevice", "no CUDA-capable device is detected" },
	{ 101, "cudaErrorInvalidDevice", "invalid device ordinal" },
	{ 200, "cudaErrorInvalidKernelImage", "device kernel image is invalid" },
	{ 201, "cudaErrorDeviceUninitialized", "invalid device context" },
	{ 218, "cudaErrorInvalidPtx", "a PTX JIT compilation failed" },
	{ 400, "cudaErrorInvalidResourceHandle", "invalid resource handle" },
	{ 401, "cudaErrorIllegalState", "the operation cannot be performed in the present state" },
	{ 500, "cudaErrorSymbolNotFound", "named symbol not found" },
	{ 600, "cudaErrorNotReady", "device not ready" },
	{ 700, "cudaErrorIllegalAddress", "an illegal memory access was encountered" },
	{ 801, "cudaErrorNotSupported", "operation not supported" },
	{ 900, "cudaErrorStreamCaptureUnsupported",
	  "operation not permitted when stream is capturing" },
	{ 901, "cudaErrorStreamCaptureInvalidated",
	  "operation failed due to a previous error during capture" },
	{ 904, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work" },
	{ 905, "cudaErrorStreamCaptureIsolation",
	  "dependency created on uncaptured work in another stream" },
	{ 906, "cudaErrorStreamCaptureImplicit",
	  "operation would make the legacy stream depend on a capturing blocking stream" },
	{ 907, "cudaErrorCapturedEvent",
	  "operation not permitted on an event last recorded in a capturing stream" },
	{ 999, "cudaErrorUnknown", "unknown error" },
};

static const char *find(cudaError_t error, bool name)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].code == (int)error)
			return name ? errors[i].name : errors[i].text;
	}
	return "unrecognized error code";
}

__attribute__((visibility("default"))) const char *cudaGetErrorName(cudaError_t error)
{
	return find(error, true);
}

__attribute__((visibility("default"))) const char *cudaGetErrorString(cudaError_t error)
{
	return find(error, false);
}
