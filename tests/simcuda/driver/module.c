// SPDX-License-Identifier: MIT
#include "module.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "stream.h"
#include "trace.h"

struct global {
	struct global *next;
	char *name;
	uint64_t start;
	size_t bytes;
};

struct CUmod_st {
	struct handle handle;
	CUcontext ctx;
	CUlibrary library; /* that made it; NULL: loaded by itself */
	struct image *image;
	CUfunction functions;
	struct global *globals;
	CUmodule next; /* in ctx->modules */
};

struct CUlib_st {
	struct handle handle;
	struct image *image;
	CUkernel kernels;
};

/* Guards all lists above. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int name_compare(const void *left, const void *right)
{
	return strcmp(left, right);
}

/* A name that outlives its module, as those do that CUPTI's records point to. */
static const char *name_keep(const char *name)
{
	static void *names;
	char **found = tfind(name, &names, name_compare);
	if (found)
		return *found;
	char *kept = strdup(name);
	return kept && tsearch(kept, &names, name_compare) ? kept : "";
}

/* ---- modules --------------------------------------------------------------------------------- */

/* Takes over the reference to `image`. */
static CUmodule module_new(CUcontext ctx, CUlibrary library, struct image *image)
{
	CUmodule module = handle_new(HANDLE_MODULE, sizeof(*module));
	if (!module) {
		image_put(image);
		return NULL;
	}
	module->ctx = ctx;
	module->library = library;
	module->image = image;
	module->next = ctx->modules;
	ctx->modules = module;
	return module;
}

/* Frees the handles of all its kernels: the next ones made are at the same addresses. */
static void module_free(CUmodule module)
{
	for (CUmodule *link = &module->ctx->modules; *link; link = &(*link)->next) {
		if (*link == module) {
			*link = module->next;
			break;
		}
	}
	while (module->functions) {
		CUfunction function = module->functions;
		module->functions = function->next;
		char *name = function->name;
		function->name = NULL;
		handle_free(function, HANDLE_FUNCTION);
		free(name);
	}
	while (module->globals) {
		struct global *global = module->globals;
		struct block block;
		module->globals = global->next;
		if (block_take(global->start, BLOCK_GLOBAL, &block))
			block_release(&block);
		free(global->name);
		free(global);
	}
	image_put(module->image);
	handle_free(module, HANDLE_MODULE);
}

void modules_destroy_all(CUcontext ctx)
{
	pthread_mutex_lock(&lock);
	while (ctx->modules)
		module_free(ctx->modules);
	pthread_mutex_unlock(&lock);
}

static CUresult module_load(CUmodule *module, const void *data)
{
	CUcontext ctx;
	CUresult result = context_need(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	struct image *image;
	result = module ? image_read(data, &image) : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	*module = module_new(ctx, NULL, image);
	pthread_mutex_unlock(&lock);
	if (*module)
		trace_module_loaded(ctx);
	return *module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult module_load_file(CUmodule *module, const char *path)
{
	if (!module || !path)
		return CUDA_ERROR_INVALID_VALUE;
	FILE *file = fopen(path, "re");
	if (!file)
		return CUDA_ERROR_FILE_NOT_FOUND;
	char *text = NULL;
	size_t room = 0;
	/* The whole file, up to a byte that no text has; a cubin needs no more than its start. */
	ssize_t len = getdelim(&text, &room, '\0', file);
	fclose(file);
	CUresult result = len > 0 ? module_load(module, text) : CUDA_ERROR_INVALID_IMAGE;
	free(text);
	return result;
}

static CUresult module_unload(CUmodule module)
{
	if (!handle_is(module, HANDLE_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	if (module->library)
		return CUDA_ERROR_INVALID_VALUE;
	streams_drain(module->ctx);
	pthread_mutex_lock(&lock);
	module_free(module);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* The same handle every time that the same name is asked for, as the real driver does. */
static CUfunction function_locked(CUmodule module, const char *name)
{
	for (CUfunction function = module->functions; function; function = function->next) {
		if (strcmp(function->name, name) == 0)
			return function;
	}
	CUfunction function = handle_new(HANDLE_FUNCTION, sizeof(*function));
	if (!function)
		return NULL;
	function->name = strdup(name);
	function->kept_name = name_keep(name);
	function->known = known_kernel_find(name);
	function->module = module;
	function->next = module->functions;
	module->functions = function;
	return function;
}

static CUresult module_function(CUfunction *function, CUmodule module, const char *name)
{
	if (!function || !name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!handle_is(module, HANDLE_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!image_has_kernel(module->image, name))
		return CUDA_ERROR_NOT_FOUND;
	pthread_mutex_lock(&lock);
	*function = function_locked(module, name);
	pthread_mutex_unlock(&lock);
	return *function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult module_count(unsigned int *count, CUmodule module)
{
	if (!handle_is(module, HANDLE_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (unsigned int)image_kernels(module->image);
	return CUDA_SUCCESS;
}

static struct global *global_locked(CUmodule module, const char *name)
{
	for (struct global *global = module->globals; global; global = global->next) {
		if (strcmp(global->name, name) == 0)
			return global;
	}
	struct block block = { .bytes = image_global_bytes(module->image, name),
		               .kind = BLOCK_GLOBAL,
		               .ctx = module->ctx };
	struct global *global = calloc(1, sizeof(*global));
	if (!global)
		return NULL;
	block.start = device_memory_take(block.bytes);
	global->name = strdup(name);
	if (!global->name || !block.start || !block_add(&block)) {
		if (block.start)
			block_release(&block);
		free(global->name);
		free(global);
		return NULL;
	}
	memset((void *)block.start, 0, block.bytes);
	global->start = block.start;
	global->bytes = block.bytes;
	global->next = module->globals;
	module->globals = global;
	return global;
}

static CUresult module_global(CUdeviceptr *address, size_t *bytes, CUmodule module,
                              const char *name)
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!handle_is(module, HANDLE_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	if (image_global_bytes(module->image, name) == 0)
		return CUDA_ERROR_NOT_FOUND;
	pthread_mutex_lock(&lock);
	const struct global *global = global_locked(module, name);
	pthread_mutex_unlock(&lock);
	if (!global)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (address)
		*address = global->start;
	if (bytes)
		*bytes = global->bytes;
	return CUDA_SUCCESS;
}

/* ---- libraries ------------------------------------------------------------------------------- */

static CUresult library_load(CUlibrary *library, const void *data)
{
	struct image *image;
	CUresult result = library ? image_read(data, &image) : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	*library = handle_new(HANDLE_LIBRARY, sizeof(**library));
	if (!*library) {
		image_put(image);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	(*library)->image = image;
	return CUDA_SUCCESS;
}

/* The library's module in the current context, made when it is first asked for. */
static CUresult library_module(CUmodule *module, CUlibrary library)
{
	CUcontext ctx;
	CUresult result = context_need(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	if (!handle_is(library, HANDLE_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	*module = ctx->modules;
	while (*module && (*module)->library != library)
		*module = (*module)->next;
	bool is_new = !*module;
	if (is_new)
		*module = module_new(ctx, library, image_get(library->image));
	pthread_mutex_unlock(&lock);
	if (is_new && *module)
		trace_module_loaded(ctx);
	return *module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult library_unload(CUlibrary library)
{
	CUcontext ctx = context_current();
	if (!handle_is(library, HANDLE_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	if (ctx)
		streams_drain(ctx);
	pthread_mutex_lock(&lock);
	/* Of other contexts' modules nothing is known here; they end with their contexts. */
	for (CUmodule module = ctx ? ctx->modules : NULL; module; module = module->next) {
		if (module->library == library) {
			module_free(module);
			break;
		}
	}
	while (library->kernels) {
		CUkernel kernel = library->kernels;
		library->kernels = kernel->next;
		char *name = kernel->name;
		kernel->name = NULL;
		handle_free(kernel, HANDLE_KERNEL);
		free(name);
	}
	image_put(library->image);
	handle_free(library, HANDLE_LIBRARY);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUkernel kernel_locked(CUlibrary library, const char *name)
{
	for (CUkernel kernel = library->kernels; kernel; kernel = kernel->next) {
		if (strcmp(kernel->name, name) == 0)
			return kernel;
	}
	CUkernel kernel = handle_new(HANDLE_KERNEL, sizeof(*kernel));
	if (!kernel)
		return NULL;
	kernel->name = strdup(name);
	kernel->kept_name = name_keep(name);
	kernel->known = known_kernel_find(name);
	kernel->library = library;
	kernel->next = library->kernels;
	library->kernels = kernel;
	return kernel;
}

static CUresult library_kernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	if (!kernel || !name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!handle_is(library, HANDLE_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!image_has_kernel(library->image, name))
		return CUDA_ERROR_NOT_FOUND;
	pthread_mutex_lock(&lock);
	*kernel = kernel_locked(library, name);
	pthread_mutex_unlock(&lock);
	return *kernel ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult library_count(unsigned int *count, CUlibrary library)
{
	if (!handle_is(library, HANDLE_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (unsigned int)image_kernels(library->image);
	return CUDA_SUCCESS;
}

static CUresult library_enumerate(CUkernel *kernels, unsigned int room, CUlibrary library)
{
	if (!kernels)
		return CUDA_ERROR_INVALID_VALUE;
	if (!handle_is(library, HANDLE_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < room; i++) {
		const char *name = image_kernel(library->image, i);
		kernels[i] = name ? kernel_locked(library, name) : NULL;
	}
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult library_global(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                               const char *name)
{
	CUmodule module;
	CUresult result = library_module(&module, library);
	return result == CUDA_SUCCESS ? module_global(address, bytes, module, name) : result;
}

static CUresult kernel_function(CUfunction *function, CUkernel kernel)
{
	CUmodule module;
	if (!handle_is(kernel, HANDLE_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = library_module(&module, kernel->library);
	return result == CUDA_SUCCESS ? module_function(function, module, kernel->name) : result;
}

static CUresult kernel_name(const char **name, CUkernel kernel)
{
	if (!handle_is(kernel, HANDLE_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = kernel->name;
	return CUDA_SUCCESS;
}

static CUresult function_name(const char **name, CUfunction function)
{
	if (!handle_is(function, HANDLE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = function->name;
	return CUDA_SUCCESS;
}

static CUresult function_module(CUmodule *module, CUfunction function)
{
	if (!handle_is(function, HANDLE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	*module = function->module;
	return CUDA_SUCCESS;
}

static CUresult kernel_library(CUlibrary *library, CUkernel kernel)
{
	if (!handle_is(kernel, HANDLE_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!library)
		return CUDA_ERROR_INVALID_VALUE;
	*library = kernel->library;
	return CUDA_SUCCESS;
}

/* The same for every kernel. */
static CUresult attribute(int *value, CUfunction_attribute which, const void *handle)
{
	if (!handle_is(handle, HANDLE_FUNCTION) && !handle_is(handle, HANDLE_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	*value = which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK           ? 1024
	         : which == CU_FUNC_ATTRIBUTE_NUM_REGS                      ? 32
	         : which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? 49152
	                                                                    : 0;
	return CUDA_SUCCESS;
}

static CUresult loading_mode(CUmoduleLoadingMode *mode)
{
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

API(cuModuleLoad, (CUmodule *, module, const char *, path), module_load_file(module, path))
API(cuModuleLoadData, (CUmodule *, module, const void *, image), module_load(module, image))
API(cuModuleLoadDataEx,
    (CUmodule *, module, const void *, image, unsigned int, count, CUjit_option *, options, void **,
     values),
    module_load(module, image))
API(cuModuleLoadFatBinary, (CUmodule *, module, const void *, image), module_load(module, image))
API(cuModuleUnload, (CUmodule, module), module_unload(module))
API(cuModuleGetFunction, (CUfunction *, function, CUmodule, module, const char *, name),
    module_function(function, module, name))
API(cuModuleGetFunctionCount, (unsigned int *, count, CUmodule, module),
    module_count(count, module))
API(cuModuleGetGlobal_v2,
    (CUdeviceptr *, address, size_t *, bytes, CUmodule, module, const char *, name),
    module_global(address, bytes, module, name))
API(cuModuleGetLoadingMode, (CUmoduleLoadingMode *, mode), loading_mode(mode))
API(cuLibraryLoadData,
    (CUlibrary *, library, const void *, code, CUjit_option *, jit, void **, jit_values,
     unsigned int, jit_count, CUlibraryOption *, options, void **, values, unsigned int, count),
    library_load(library, code))
API(cuLibraryUnload, (CUlibrary, library), library_unload(library))
API(cuLibraryGetKernel, (CUkernel *, kernel, CUlibrary, library, const char *, name),
    library_kernel(kernel, library, name))
API(cuLibraryGetKernelCount, (unsigned int *, count, CUlibrary, library),
    library_count(count, library))
API(cuLibraryEnumerateKernels, (CUkernel *, kernels, unsigned int, room, CUlibrary, library),
    library_enumerate(kernels, room, library))
API(cuLibraryGetModule, (CUmodule *, module, CUlibrary, library), library_module(module, library))
API(cuLibraryGetGlobal,
    (CUdeviceptr *, address, size_t *, bytes, CUlibrary, library, const char *, name),
    library_global(address, bytes, library, name))
API(cuKernelGetFunction, (CUfunction *, function, CUkernel, kernel),
    kernel_function(function, kernel))
API(cuKernelGetLibrary, (CUlibrary *, library, CUkernel, kernel), kernel_library(library, kernel))
API(cuKernelGetName, (const char **, name, CUkernel, kernel), kernel_name(name, kernel))
API(cuKernelGetAttribute,
    (int *, value, CUfunction_attribute, which, CUkernel, kernel, CUdevice, device),
    attribute(value, which, kernel))
API(cuKernelSetAttribute,
    (CUfunction_attribute, which, int, value, CUkernel, kernel, CUdevice, device),
    attribute(&value, which, kernel))
API(cuFuncGetName, (const char **, name, CUfunction, function), function_name(name, function))
API(cuFuncGetModule, (CUmodule *, module, CUfunction, function), function_module(module, function))
API(cuFuncGetAttribute, (int *, value, CUfunction_attribute, which, CUfunction, function),
    attribute(value, which, function))
API(cuFuncSetAttribute, (CUfunction, function, CUfunction_attribute, which, int, value),
    attribute(&value, which, function))
API(cuFuncSetCacheConfig, (CUfunction, function, CUfunc_cache, config),
    attribute(&(int){ 0 }, CU_FUNC_ATTRIBUTE_NUM_REGS, function))
API(cuFuncLoad, (CUfunction, function),
    attribute(&(int){ 0 }, CU_FUNC_ATTRIBUTE_NUM_REGS, function))
