// SPDX-License-Identifier: MIT
/* cuGetProcAddress: which exported variant a base name means for a CUDA version. As the real one,
 * it */
/* gives out addresses of exported functions and nothing else. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "gate.h"

/* Variants that came later than CUDA 4.0. `_v2` of any other function has been there since. */
static const struct variant {
	const char *name;
	int version;
	const char *suffix;
} variants[] = {
	{ "cuCtxCreate", 11040, "_v3" },
	{ "cuCtxCreate", 12050, "_v4" },
	{ "cuCtxGetDevice", 13000, "_v2" },
	{ "cuCtxSynchronize", 13000, "_v2" },
	{ "cuDeviceGetUuid", 11040, "_v2" },
	{ "cuDevicePrimaryCtxRelease", 11000, "_v2" },
	{ "cuDevicePrimaryCtxReset", 11000, "_v2" },
	{ "cuDevicePrimaryCtxSetFlags", 11000, "_v2" },
	{ "cuEventElapsedTime", 12080, "_v2" },
	{ "cuGetProcAddress", 12000, "_v2" },
	{ "cuGraphAddDependencies", 12030, "_v2" },
	{ "cuGraphAddKernelNode", 12000, "_v2" },
	{ "cuGraphExecKernelNodeSetParams", 12000, "_v2" },
	{ "cuGraphExecUpdate", 12000, "_v2" },
	{ "cuGraphInstantiate", 11000, "_v2" },
	{ "cuGraphKernelNodeGetParams", 12000, "_v2" },
	{ "cuGraphKernelNodeSetParams", 12000, "_v2" },
	{ "cuIpcOpenMemHandle", 11000, "_v2" },
	{ "cuLinkAddData", 6050, "_v2" },
	{ "cuLinkAddFile", 6050, "_v2" },
	{ "cuLinkCreate", 6050, "_v2" },
	{ "cuMemAdvise", 12020, "_v2" },
	{ "cuMemHostRegister", 6050, "_v2" },
	{ "cuMemPrefetchAsync", 12020, "_v2" },
	{ "cuStreamBeginCapture", 10010, "_v2" },
	{ "cuStreamGetCaptureInfo", 11030, "_v2" },
	{ "cuStreamGetCaptureInfo", 12030, "_v3" },
	{ "cuStreamUpdateCaptureDependencies", 12030, "_v2" },
	{ "cuStreamBatchMemOp", 11070, "_v2" },
	{ "cuStreamWaitValue32", 11070, "_v2" },
	{ "cuStreamWaitValue64", 11070, "_v2" },
	{ "cuStreamWriteValue32", 11070, "_v2" },
	{ "cuStreamWriteValue64", 11070, "_v2" },
};

/* Names whose newest meaning has another name altogether. */
static const struct variant renamed[] = {
	{ "cuGraphInstantiate", 11040, "cuGraphInstantiateWithFlags" },
};

static void *own_library(void)
{
	static void *library;
	Dl_info info;
	if (!library && dladdr((void *)own_library, &info) != 0)
		library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	return library;
}

/* The per-thread variant where it is asked for and there is one, else the plain one. */
static void *lookup(const char *name, const char *suffix, bool per_thread)
{
	static const char *const endings[] = { "_ptsz", "_ptds", "" };
	for (size_t i = per_thread ? 0 : 2; i < 3; i++) {
		char full[160];
		snprintf(full, sizeof(full), "%s%s%s", name, suffix, endings[i]);
		void *function = dlsym(own_library(), full);
		if (function)
			return function;
	}
	return NULL;
}

static void *find(const char *name, int version, bool per_thread)
{
	const char *suffix = NULL;
	bool listed = false;
	for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++) {
		if (strcmp(renamed[i].name, name) == 0 && version >= renamed[i].version)
			return lookup(renamed[i].suffix, "", per_thread);
	}
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		if (strcmp(variants[i].name, name) != 0)
			continue;
		listed = true;
		if (version >= variants[i].version)
			suffix = variants[i].suffix;
	}
	void *function = NULL;
	if (suffix || (!listed && version >= 3020))
		function = lookup(name, suffix ? suffix : "_v2", per_thread);
	return function ? function : lookup(name, "", per_thread);
}

static CUresult get_address(const char *name, void **function, int version, cuuint64_t flags,
                            CUdriverProcAddressQueryResult *status)
{
	if (!name || !function || version <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	/* Base names only: no function's own name ends in a variant's suffix. */
	const char *end = strrchr(name, '_');
	bool is_base = strncmp(name, "cu", 2) == 0 && !end;
	*function =
		is_base ? find(name, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
			: NULL;
	if (status)
		*status = *function ? CU_GET_PROC_ADDRESS_SUCCESS
		                    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	/* The second version reports what is missing by its status alone. */
	return *function || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

API_ALWAYS(cuGetProcAddress,
           (const char *, name, void **, function, int, version, cuuint64_t, flags),
           get_address(name, function, version, flags, NULL))
API_ALWAYS(cuGetProcAddress_v2,
           (const char *, name, void **, function, int, version, cuuint64_t, flags,
            CUdriverProcAddressQueryResult *, status),
           get_address(name, function, version, flags, status))
