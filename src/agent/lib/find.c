// SPDX-License-Identifier: MIT
#include "agent/lib/glibc.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/lib/cupti_abi.h"
#include "agent/lib/find.h"
#include "base/array.h"

#define OLDEST 11
#define NEWEST 13

struct search {
	struct found *found;
	struct failure *failure;
	unsigned driver;  /* CUDA's major version: none newer */
	unsigned runtime; /* the same of the loaded libcudart; 0: none, or a static one */
	bool foreign;     /* one loads, but is not for this process */
	bool given;       /* the user names it: the path is cuscope's own */
};

/* ---- what is loaded ------------------------------------------------------------------------ */

struct loaded {
	const char *name; /* without what follows ".so" */
	char path[PATH_MAX];
};

static int is_loaded(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct loaded *loaded = data;
	const char *base = strrchr(info->dlpi_name, '/');
	size_t length = strlen(loaded->name);

	base = base ? base + 1 : info->dlpi_name;
	if (strncmp(base, loaded->name, length) != 0)
		return 0;
	snprintf(loaded->path, sizeof(loaded->path), "%s", info->dlpi_name);
	return 1;
}

/* The path of the first loaded library of that name. */
static bool find_loaded(struct loaded *loaded, const char *name)
{
	loaded->name = name;
	return dl_iterate_phdr(is_loaded, loaded) == 1;
}

uint32_t find_driver_version(void)
{
	static int (*get_version)(int *version); /* libcuda is never unloaded */
	int version = 0;

	if (!get_version) {
		void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

		if (library)
			get_version = (int (*)(int *))dlsym(library, "cuDriverGetVersion");
	}
	if (!get_version || get_version(&version) != 0 || version < 0)
		return 0;
	return (uint32_t)version;
}

void find_profiler(struct failure *failure)
{
	static const struct {
		const char *library, *whose;
	} all[] = {
		{ "libToolsInjection", "Nsight Systems" },
		{ "libcuda-injection.so", "Nsight Compute" },
		{ "libsanitizer-collection.so", "Compute Sanitizer" },
		{ "libproton.so", "Proton" },
		{ "xla_cuda_plugin.so", "XLA" },
		{ "libtensorflow_cc.so", "TensorFlow" },
		{ "libtorch_cpu.so", "torch.profiler" },
	};
	struct loaded loaded;
	const char *before = "perhaps ";

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (!find_loaded(&loaded, all[i].library))
			continue;
		failure_add(failure, "%s%s", before, all[i].whose);
		before = " or ";
	}
}

/* ---- trying one ---------------------------------------------------------------------------- */

/* CUDA's major version, from CUPTI's counting. */
static unsigned cuda_major(uint32_t version)
{
	if (version >= 100000)
		return version / 10000;
	return version >= CUPTI_VERSION_12_0 ? 12 : version >= CUPTI_VERSION_11_0 ? 11 : 10;
}

/*
 * Not newer than the driver, nor older by more than one. On driver 580 (CUDA 13.0) CUPTI of CUDA
 * 11.0 to 11.7 crashed the program, and that of 11.8 told of kernels that never ran. 12.9 was
 * right.
 */
static bool fits_driver(const struct search *search, unsigned major)
{
	return major >= OLDEST && major <= NEWEST && major <= search->driver &&
	       major + 1 >= search->driver;
}

static bool fits(const struct search *search, unsigned major)
{
	return fits_driver(search, major) && (!search->runtime || major == search->runtime ||
	                                      !fits_driver(search, search->runtime));
}

/* Whether the library at `path` is one to use; it is then loaded. */
static bool try_path(struct search *search, const char *path, int flags)
{
	uint32_t (*get_version)(uint32_t * version);
	const char *said = search->given ? "the one of --cupti" : path;
	uint32_t version = 0;
	void *library;

	library = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
	if (!library) {
		if (!flags)
			failure_add(search->failure, "%s%s", search->failure->text[0] ? ", " : "",
			            said);
		return false;
	}
	get_version = (uint32_t(*)(uint32_t *))dlsym(library, "cuptiGetVersion");
	if (!get_version || get_version(&version) || !fits(search, cuda_major(version))) {
		failure_add(search->failure, "%s%s (of CUDA %u)",
		            search->failure->text[0] ? ", " : "", said, cuda_major(version));
		search->foreign = true;
		return false;
	}
	search->found->library = library;
	search->found->version = version;
	snprintf(search->found->path, sizeof(search->found->path), "%s", path);
	return true;
}

/* The major version in a file's name; 0: none. */
static unsigned named_major(const char *path)
{
	const char *at = strstr(path, ".so.");
	unsigned major = 0;

	for (at = at ? at + strlen(".so.") : ""; *at >= '0' && *at <= '9' && major < 1000; at++)
		major = major * 10 + (unsigned)(*at - '0');
	return major;
}

/*
 * What a pattern matches, from the last one on: the newest. Names with a version that does not fit
 * are not even loaded; names without one are links to others of the same directory.
 */
static bool try_pattern(struct search *search, const char *pattern)
{
	glob_t matches = { 0 };
	bool done = false;

	if (glob(pattern, 0, NULL, &matches) == 0) {
		for (size_t i = matches.gl_pathc; i-- > 0 && !done;) {
			if (fits(search, named_major(matches.gl_pathv[i])))
				done = try_path(search, matches.gl_pathv[i], 0);
		}
	} else {
		failure_add(search->failure, "%s%s", search->failure->text[0] ? ", " : "", pattern);
	}
	globfree(&matches);
	return done;
}

/* ---- places -------------------------------------------------------------------------------- */

/* From libcudart's directory: its own, a toolkit's, and wheels' (one directory for each library
 * until CUDA 12, one for all of CUDA 13). */
static const char *const beside_runtime[] = {
	"",
	"/../extras/CUPTI/lib64",
	"/../../../extras/CUPTI/lib64",
	"/../../cuda_cupti/lib",
	"/../../cu13/lib",
};

static const char *const toolkits[] = {
	"/usr/local/cuda/extras/CUPTI/lib64",
	"/usr/local/cuda/lib64",
	"/usr/local/cuda-1[1-3]*/extras/CUPTI/lib64",
	"/usr/local/cuda-1[1-3]*/lib64",
	"/usr/local/cuda-1[1-3]*/lib",
	"/usr/local/cuda*/targets/*/lib",
	"/opt/cuda/extras/CUPTI/lib64",
	"/opt/cuda/lib64",
};

/* Not from a path that means another folder since the process went elsewhere. */
static bool try_beside(struct search *search, const char *runtime)
{
	char pattern[PATH_MAX + 64];
	const char *end = *runtime == '/' ? strrchr(runtime, '/') : NULL;

	for (size_t i = 0; end && i < ARRAY_SIZE(beside_runtime); i++) {
		snprintf(pattern, sizeof(pattern), "%.*s%s/libcupti.so.*", (int)(end - runtime),
		         runtime, beside_runtime[i]);
		if (try_pattern(search, pattern))
			return true;
	}
	return false;
}

static bool try_toolkits(struct search *search)
{
	static const char *const homes[] = { "CUDA_HOME", "CUDA_PATH" };
	char pattern[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(homes); i++) {
		const char *home = secure_getenv(homes[i]);

		if (!home || !*home)
			continue;
		snprintf(pattern, sizeof(pattern), "%s/extras/CUPTI/lib64/libcupti.so.*", home);
		if (try_pattern(search, pattern))
			return true;
		snprintf(pattern, sizeof(pattern), "%s/lib*/libcupti.so.*", home);
		if (try_pattern(search, pattern))
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(toolkits); i++) {
		snprintf(pattern, sizeof(pattern), "%s/libcupti.so.*", toolkits[i]);
		if (try_pattern(search, pattern))
			return true;
	}
	return false;
}

/* Where the loader looks, apart from its cache; NULL: that is not known. To be freed. */
static Dl_serinfo *search_path(void)
{
	void *program = dlopen(NULL, RTLD_LAZY);
	Dl_serinfo size, *path;

	if (!program || dlinfo(program, RTLD_DI_SERINFOSIZE, &size))
		return NULL;
	path = malloc(size.dls_size);
	if (!path)
		return NULL;
	if (dlinfo(program, RTLD_DI_SERINFOSIZE, path) || dlinfo(program, RTLD_DI_SERINFO, path)) {
		free(path);
		return NULL;
	}
	return path;
}

/*
 * LD_LIBRARY_PATH that begins or ends with ':' means the folder that the process is in, which may
 * be anybody's. Nothing that the program does not load itself is loaded from there. Then the others
 * are looked through one by one.
 */
static bool has_relative(const Dl_serinfo *path)
{
	for (unsigned i = 0; i < path->dls_cnt; i++) {
		if (path->dls_serpath[i].dls_name[0] != '/')
			return true;
	}
	return false;
}

static bool try_absolute(struct search *search, const Dl_serinfo *path)
{
	char pattern[PATH_MAX + 64];

	for (unsigned i = 0; i < path->dls_cnt; i++) {
		const char *folder = path->dls_serpath[i].dls_name;

		snprintf(pattern, sizeof(pattern), "%s/libcupti.so.*", folder);
		if (*folder == '/' && try_pattern(search, pattern))
			return true;
	}
	return false;
}

/* CUDA 11 put its minor version into the name: libcupti.so.11.8. */
static bool try_names(struct search *search)
{
	char name[32];

	for (unsigned major = NEWEST; major >= OLDEST; major--) {
		if (!fits(search, major))
			continue;
		for (int minor = major == 11 ? 8 : 0; minor >= 0; minor--) {
			if (major == 11)
				snprintf(name, sizeof(name), "libcupti.so.11.%d", minor);
			else
				snprintf(name, sizeof(name), "libcupti.so.%u", major);
			if (try_path(search, name, 0))
				return true;
		}
	}
	return false;
}

static bool try_loader(struct search *search)
{
	Dl_serinfo *path = search_path();
	bool found = path && has_relative(path) ? try_absolute(search, path) : try_names(search);

	free(path);
	return found;
}

/* The user's own choice: it alone, whatever the runtime is. Its path is told, not a number. */
static bool try_given(struct search *search, int given)
{
	struct found *found = search->found;
	char path[64];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", given);
	if (!try_path(search, path, 0))
		return false;
	length = readlink(path, found->path, sizeof(found->path) - 1);
	found->path[length > 0 ? length : 0] = '\0';
	return true;
}

int find_cupti(int given, uint32_t driver_version, struct found *found, struct failure *failure)
{
	struct search search = { found, failure, driver_version / 1000, 0, false, given >= 0 };
	struct loaded loaded;

	memset(found, 0, sizeof(*found));
	failure->text[0] = '\0';
	if (given >= 0) {
		if (try_given(&search, given))
			return 0;
	} else {
		if (find_loaded(&loaded, "libcupti.so") &&
		    try_path(&search, loaded.path, RTLD_NOLOAD))
			return 0;
		if (find_loaded(&loaded, "libcudart.so")) {
			search.runtime = named_major(loaded.path);
			if (try_beside(&search, loaded.path))
				return 0;
		}
		if (try_loader(&search) || try_toolkits(&search))
			return 0;
	}
	failure->what = search.foreign ? AGENT_CUPTI_FOREIGN : AGENT_NO_CUPTI;
	return -1;
}
