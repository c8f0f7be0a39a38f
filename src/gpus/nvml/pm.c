// SPDX-License-Identifier: MIT
#include "gpus/nvml/pm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/xalloc.h"
#include "gpus/gpu_metrics.h"
#include "gpus/nvml/library_path.h"
#include "gpus/nvml/pm_calls.h"

#define IMAGE_SAMPLES 1024u       /* of some 17 KiB each */
#define IMAGE_SPARE   32          /* samples beyond those that are due, and a quarter of them */
#define BUFFER_BYTES  (64u << 20) /* of the hardware: a second and more */
#define SM_LEAST      0.01        /* percent: one warp for a hundredth of a sample has more */
#define CLOCK_GHZ     1.4         /* of the system's clock, roughly: samples tell their times */
#define DRAM_LEAST    200         /* hundredths of a percent; these two: while no warp runs */
#define COPY_LEAST    300         /* the same: an engine that copied says more */
#define PCIE_LEAST    2e9         /* bytes a second */

/* What is asked for, in the order of what is wanted most: all in one pass, or left out. */
enum {
	VALUE_SM,
	VALUE_ENGINE,
	VALUE_COPY, /* these three: engines for copies, of which no GPU tells all */
	VALUE_COPY_ASYNC,
	VALUE_COPY_FIRST,
	VALUE_TENSOR,
	VALUE_DRAM,
	VALUE_PCIE_READ,
	VALUE_PCIE_WRITE,
	VALUES
};
static const char *const wanted[VALUES] = {
	[VALUE_SM] = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
	[VALUE_ENGINE] = "gr__cycles_active.avg.pct_of_peak_sustained_elapsed",
	[VALUE_COPY] = "gpu__engine_cycles_active_any_syncce.avg.pct_of_peak_sustained_elapsed",
	[VALUE_COPY_ASYNC] =
		"gpu__engine_cycles_active_any_asyncce.avg.pct_of_peak_sustained_elapsed",
	[VALUE_COPY_FIRST] =
		"gpu__scheduler_engine_asyncce0_cycles_active.avg.pct_of_peak_sustained_elapsed",
	[VALUE_TENSOR] = "sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
	[VALUE_DRAM] = "dram__throughput.avg.pct_of_peak_sustained_elapsed",
	[VALUE_PCIE_READ] = "pcie__read_bytes.sum.per_second",
	[VALUE_PCIE_WRITE] = "pcie__write_bytes.sum.per_second",
};

struct pm {
	void *cuda, *host, *cupti;
	uint32_t n;
#define MEMBER(name, type, symbol) int (*name)(type * params);
	PM_CALLS(MEMBER)
#undef MEMBER
};

struct pm_gpu {
	struct pm *pm;
	void *host, *object;
	uint8_t *availability, *config, *image;
	size_t config_bytes, image_bytes;
	const char *names[VALUES];
	int value[VALUES]; /* where its number stands; -1: it is not told */
	size_t n;
	size_t seen, room; /* samples of the image: that were given on, and that there can be */
	uint64_t interval_ns, decoded_ns; /* when it was decoded last */
	uint32_t index;
	bool began; /* the first sample of all is of another length */
};

/* Up to the end of a last field, which is what CUPTI takes for the size. */
#define UP_TO(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* ---- libraries ----------------------------------------------------------------------------- */

static void *load_cuda(const char *folders, char *why, size_t size)
{
	char path[4096], refused[4096];
	void *library;

	library_path_find("libcuda.so.1", folders, path, sizeof(path), refused, sizeof(refused));
	/* in no place that is known, the loader looks for it as root has told it to */
	library = dlopen(*path ? path : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (!library && *path)
		snprintf(why, size, "%s", dlerror());
	else if (!library && *refused)
		snprintf(why, size, "others than root may change %s", refused);
	else if (!library)
		snprintf(why, size, "libcuda.so.1 is not installed here");
	return library;
}

/* A libcupti needs the one of its release, which lies beside it. */
static bool load_beside(struct pm *pm, const char *cupti, char *why, size_t size)
{
	char folder[4096], path[4096], refused[4096];
	char *slash;

	snprintf(folder, sizeof(folder), "%s", cupti);
	slash = strrchr(folder, '/');
	*slash = '\0';
	library_path_find("libnvperf_host.so", folder, path, sizeof(path), refused,
	                  sizeof(refused));
	if (strncmp(path, folder, strlen(folder)) != 0 || path[strlen(folder)] != '/') {
		snprintf(why, size, "%s: libnvperf_host.so is not beside it", cupti);
		return false;
	}
	pm->host = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	pm->cupti = pm->host ? dlopen(cupti, RTLD_NOW | RTLD_GLOBAL) : NULL;
	if (!pm->cupti)
		snprintf(why, size, "%s", dlerror());
	return pm->cupti;
}

static bool load_cupti(struct pm *pm, const char *folders, int driver, char *why, size_t size)
{
	static const struct {
		const char *name;
		int driver;
	} releases[] = { { "libcupti.so.13", 13000 }, { "libcupti.so.12", 12080 } };
	char path[4096], refused[4096];
	bool loaded = false;

	for (size_t i = 0; i < ARRAY_SIZE(releases) && !loaded; i++) {
		if (driver < releases[i].driver)
			continue;
		library_path_find(releases[i].name, folders, path, sizeof(path), refused,
		                  sizeof(refused));
		if (*path)
			loaded = load_beside(pm, path, why, size);
		else if (*refused)
			snprintf(why, size, "others than root may change %s", refused);
	}
	if (!loaded && !*why)
		snprintf(why, size, "no libcupti of CUDA 12.8 or newer is in a place of root's");
	return loaded;
}

static bool find_functions(struct pm *pm, char *why, size_t size)
{
#define FIND(name, type, symbol)                                                                   \
	*(void **)&pm->name = dlsym(pm->cupti, symbol);                                            \
	if (!pm->name) {                                                                           \
		snprintf(why, size, "this libcupti has no %s: it is of before CUDA 12.8", symbol); \
		return false;                                                                      \
	}
	PM_CALLS(FIND)
#undef FIND
	return true;
}

/* All GPUs, in the order in which nvidia-smi has them. */
static bool count_gpus(struct pm *pm, int *driver, char *why, size_t size)
{
	int (*init)(unsigned), (*version)(int *), (*count)(int *), n = 0, r;

	unsetenv("CUDA_VISIBLE_DEVICES");
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	*(void **)&init = dlsym(pm->cuda, "cuInit");
	*(void **)&version = dlsym(pm->cuda, "cuDriverGetVersion");
	*(void **)&count = dlsym(pm->cuda, "cuDeviceGetCount");
	if (!init || !version || !count)
		return false;
	r = init(0);
	if (r || version(driver) || count(&n) || n < 1) {
		snprintf(why, size, "CUDA finds no GPU (error %d)", r);
		return false;
	}
	pm->n = (uint32_t)n;
	return true;
}

struct pm *pm_open(const char *folders, char *why, size_t size)
{
	struct pm *pm = xcalloc(1, sizeof(*pm));
	struct pm_plain plain = { .size = sizeof(plain) };
	int driver = 0, r;

	*why = '\0';
	pm->cuda = load_cuda(folders, why, size);
	if (pm->cuda && count_gpus(pm, &driver, why, size) &&
	    load_cupti(pm, folders, driver, why, size) && find_functions(pm, why, size)) {
		r = pm->initialize(&plain);
		if (!r)
			return pm;
		snprintf(why, size, "CUPTI does not begin (error %d)", r);
	}
	free(pm); /* the libraries stay: not all can be taken out again */
	return NULL;
}

uint32_t pm_gpus(const struct pm *pm)
{
	return pm->n;
}

/* ---- a GPU --------------------------------------------------------------------------------- */

static void *host_new(const struct pm_gpu *gpu, const char *chip)
{
	struct pm_host host = { .size = sizeof(host),
		                .type = PM_TYPE,
		                .chip = chip,
		                .availability = gpu->availability };

	return gpu->pm->host_begin(&host) ? NULL : host.host;
}

static void host_free(const struct pm_gpu *gpu, void *host)
{
	struct pm_object end = { .size = sizeof(end), .object = host };

	if (host)
		gpu->pm->host_end(&end);
}

/* Returns in how many passes the names can be had; 0: they cannot. */
static size_t configure(struct pm_gpu *gpu, void *host, size_t n)
{
	struct pm *pm = gpu->pm;
	struct pm_add add = { .size = sizeof(add), .host = host, .names = gpu->names, .n = n };
	struct pm_config_size bytes = { .size = sizeof(bytes), .host = host };
	struct pm_config config = { .size = sizeof(config), .host = host };
	struct pm_passes passes = { .size = sizeof(passes) };

	if (!host || pm->add(&add) || pm->config_size(&bytes))
		return 0;
	free(gpu->config);
	gpu->config_bytes = config.bytes = passes.bytes = bytes.bytes;
	gpu->config = config.image = passes.config = xcalloc(1, bytes.bytes);
	return pm->config(&config) || pm->passes(&passes) ? 0 : passes.n;
}

/* What can be told in one pass together. */
static bool choose_values(struct pm_gpu *gpu, const char *chip)
{
	for (int i = 0; i < VALUES; i++) {
		void *host = host_new(gpu, chip);

		gpu->names[gpu->n] = wanted[i];
		gpu->value[i] = configure(gpu, host, gpu->n + 1) == 1 ? (int)gpu->n++ : -1;
		host_free(gpu, host);
	}
	if (gpu->value[VALUE_SM] < 0)
		return false;
	gpu->host = host_new(gpu, chip);
	return configure(gpu, gpu->host, gpu->n) == 1;
}

static bool describe_gpu(struct pm_gpu *gpu, uint32_t index)
{
	struct pm_chip chip = { .size = sizeof(chip), .device = index };
	struct pm_availability counters = { .size = sizeof(counters), .device = index };

	if (gpu->pm->chip(&chip) || !chip.name || gpu->pm->availability(&counters))
		return false;
	gpu->availability = counters.image = xcalloc(1, counters.bytes + 1);
	return !gpu->pm->availability(&counters) && choose_values(gpu, chip.name);
}

/* Takes 3 us a sample that there is room for, so it is done seldom. */
static int clear_image(struct pm_gpu *gpu)
{
	struct pm_data data = { .size = sizeof(data),
		                .object = gpu->object,
		                .bytes = gpu->image_bytes,
		                .image = gpu->image };

	gpu->seen = 0;
	return gpu->pm->data_init(&data);
}

static int set_interval(struct pm_gpu *gpu, uint64_t interval_ns)
{
	struct pm_set set = { .size = UP_TO(struct pm_set, append),
		              .object = gpu->object,
		              .config_bytes = gpu->config_bytes,
		              .config = gpu->config,
		              .buffer_bytes = BUFFER_BYTES,
		              .interval = interval_ns,
		              .trigger = PM_BY_TIME };
	int r = gpu->pm->set(&set);

	if (r) { /* Turing and GA100 have no other */
		set.trigger = PM_BY_CLOCK;
		set.interval = (uint64_t)(CLOCK_GHZ * (double)interval_ns);
		r = gpu->pm->set(&set);
	}
	gpu->interval_ns = interval_ns;
	return r;
}

static int start_sampling(struct pm_gpu *gpu)
{
	struct pm_object start = { .size = sizeof(start), .object = gpu->object };
	int r = clear_image(gpu);

	gpu->began = false;
	gpu->decoded_ns = clock_now_ns();
	return r ? r : gpu->pm->start(&start);
}

static int begin_sampling(struct pm_gpu *gpu, uint32_t index, uint64_t interval_ns)
{
	struct pm_enable enable = { .size = sizeof(enable), .device = index };
	struct pm_data_size bytes = {
		.size = sizeof(bytes), .names = gpu->names, .n = gpu->n, .samples = IMAGE_SAMPLES
	};
	int r = gpu->pm->enable(&enable);

	if (r)
		return r;
	gpu->object = bytes.object = enable.object;
	r = set_interval(gpu, interval_ns);
	if (!r)
		r = gpu->pm->data_size(&bytes);
	if (r)
		return r;
	gpu->image_bytes = bytes.bytes;
	gpu->image = xcalloc(1, bytes.bytes);
	gpu->room = IMAGE_SAMPLES;
	return start_sampling(gpu);
}

static void end_sampling(struct pm_gpu *gpu)
{
	struct pm_object object = { .size = sizeof(object), .object = gpu->object };

	if (gpu->object) {
		gpu->pm->stop(&object);
		gpu->pm->disable(&object);
	}
	gpu->object = NULL;
	free(gpu->image);
	gpu->image = NULL;
}

struct pm_gpu *pm_start(struct pm *pm, uint32_t index, uint64_t interval_ns, char *why, size_t size)
{
	struct pm_gpu *gpu = xcalloc(1, sizeof(*gpu));
	int r;

	gpu->pm = pm;
	gpu->index = index;
	if (!describe_gpu(gpu, index)) {
		snprintf(why, size, "CUPTI cannot sample GPU %u", index);
		pm_stop(gpu);
		return NULL;
	}
	r = begin_sampling(gpu, index, interval_ns);
	if (!r)
		return gpu;
	if (r == PM_HARDWARE_BUSY)
		snprintf(why, size, "another program samples GPU %u", index);
	else
		snprintf(why, size, "CUPTI cannot sample GPU %u (error %d)", index, r);
	pm_stop(gpu);
	return NULL;
}

void pm_stop(struct pm_gpu *gpu)
{
	end_sampling(gpu);
	host_free(gpu, gpu->host);
	free(gpu->availability);
	free(gpu->config);
	free(gpu);
}

/* H200, CUPTI 13.0: another configuration without an end in between is taken, and ignored. */
bool pm_pace(struct pm_gpu *gpu, uint64_t interval_ns)
{
	end_sampling(gpu);
	return !begin_sampling(gpu, gpu->index, interval_ns);
}

/* ---- samples ------------------------------------------------------------------------------- */

/* Hundredths of a percent. What is no number is not told. */
static int64_t share(const struct pm_gpu *gpu, const double *values, int i)
{
	double value = gpu->value[i] < 0 ? -1 : values[gpu->value[i]];

	if (!(value >= 0))
		return GPU_METRIC_UNKNOWN;
	return value < 100 ? (int64_t)(100 * value) : GPU_SHARE_WHOLE;
}

static bool is_above(const struct pm_gpu *gpu, const double *values, int i, double least)
{
	return gpu->value[i] >= 0 && values[gpu->value[i]] >= least;
}

/* By engines, or where those that copy are not told by what moves while no warp runs. */
static int64_t copies(const struct pm_gpu *gpu, const double *values, bool runs)
{
	int64_t most = 0;

	for (int i = VALUE_COPY; i <= VALUE_COPY_FIRST; i++) {
		int64_t is = share(gpu, values, i);

		most = is > most ? is : most;
	}
	if (!runs && most < COPY_LEAST &&
	    (share(gpu, values, VALUE_DRAM) >= DRAM_LEAST ||
	     is_above(gpu, values, VALUE_PCIE_READ, PCIE_LEAST) ||
	     is_above(gpu, values, VALUE_PCIE_WRITE, PCIE_LEAST)))
		return GPU_SHARE_WHOLE;
	return most;
}

static void fill(const struct pm_gpu *gpu, const double *values, struct pm_sample *sample)
{
	int64_t engine = share(gpu, values, VALUE_ENGINE);
	bool runs = is_above(gpu, values, VALUE_SM, SM_LEAST);

	sample->sm = share(gpu, values, VALUE_SM);
	sample->tensor = share(gpu, values, VALUE_TENSOR);
	sample->dram = share(gpu, values, VALUE_DRAM);
	sample->busy = !runs ? 0 : engine == GPU_METRIC_UNKNOWN ? GPU_SHARE_WHOLE : engine;
	sample->copies = copies(gpu, values, runs);
}

static bool read_sample(struct pm_gpu *gpu, size_t index, struct pm_sample *sample)
{
	double values[VALUES];
	struct pm_values evaluate = { .size = sizeof(evaluate),
		                      .host = gpu->host,
		                      .image = gpu->image,
		                      .bytes = gpu->image_bytes,
		                      .index = index,
		                      .names = gpu->names,
		                      .n = gpu->n,
		                      .values = values };
	struct pm_sample_info info = { .size = sizeof(info),
		                       .object = gpu->object,
		                       .image = gpu->image,
		                       .bytes = gpu->image_bytes,
		                       .index = index };

	if (gpu->pm->sample_info(&info) || info.end <= info.begin || gpu->pm->values(&evaluate))
		return false;
	sample->begin_ns = info.begin;
	sample->end_ns = info.end;
	fill(gpu, values, sample);
	return true;
}

/*
 * Decoding adds to what the image has; what it finds no room for is lost (H200, CUPTI 13.0), though
 * it says nothing but that the image is full. So there is always room for what is due.
 */
static bool make_room(struct pm_gpu *gpu)
{
	uint64_t due = (clock_now_ns() - gpu->decoded_ns) / gpu->interval_ns;

	return gpu->seen + due + due / 4 + IMAGE_SPARE <= gpu->room || !clear_image(gpu);
}

enum pm_reading pm_read(struct pm_gpu *gpu,
                        void (*each)(void *data, const struct pm_sample *sample), void *data,
                        size_t *n, uint64_t *begun_ns)
{
	struct pm_decode params = { .size = UP_TO(struct pm_decode, overflow),
		                    .object = gpu->object,
		                    .image = gpu->image,
		                    .bytes = gpu->image_bytes };
	struct pm_data_info info = { .size = sizeof(info),
		                     .image = gpu->image,
		                     .bytes = gpu->image_bytes };
	struct pm_sample sample;
	bool full;
	int r;

	*n = 0;
	if (!make_room(gpu))
		return PM_FAILED;
	gpu->decoded_ns = *begun_ns = clock_now_ns();
	r = gpu->pm->decode(&params);
	/* an image that is full says so in one of two ways; what is in it is good */
	if ((r && r != PM_OUT_OF_MEMORY) || gpu->pm->data_info(&info))
		return PM_FAILED;
	gpu->room = info.room < IMAGE_SAMPLES ? info.room : IMAGE_SAMPLES;
	for (; gpu->seen < info.completed && gpu->seen < IMAGE_SAMPLES; gpu->seen++) {
		if (gpu->began && read_sample(gpu, gpu->seen, &sample))
			each(data, &sample);
		gpu->began = true;
		++*n;
	}
	full = r || params.stopped == PM_DECODED_FULL;
	if (full && (!gpu->seen || clear_image(gpu)))
		return PM_FAILED;
	if (params.overflow)
		return PM_LOST;
	return full ? PM_MORE : PM_READ;
}
