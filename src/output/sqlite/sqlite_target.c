// SPDX-License-Identifier: MIT
/*
 * The machine that a trace is of: itself, its GPUs, and which of them each process used. Sizes that
 * follow from a GPU's compute capability are taken from there.
 */
#include "output/sqlite/sqlite.h"

#include <string.h>

#include "analysis/by_id.h"
#include "gpus/gpu_metrics.h"

#define DEVICES_MOST 64 /* of a process */

/* ---- the machine ---------------------------------------------------------------------------- */

/*
 * nsys numbers its properties, and readers take that number for a key. Its numbers are published
 * nowhere, so these are our own: one for each name, never another one's.
 */
enum system_property {
	SYSTEM_HOSTNAME = 1,
	SYSTEM_KERNEL_VERSION,
	SYSTEM_DRIVER_VERSION,
	SYSTEM_CPU_ARCHITECTURE,
	SYSTEM_CPU_CORES,
	SYSTEM_MEMORY,
	SYSTEM_GPUS,
};

static void add_system(struct database *db, enum system_property property, const char *name,
                       const char *value)
{
	if (!value)
		return;
	row_begin(db, TABLE_SYSTEM);
	row_int(db, MACHINE);
	row_static(db, "");
	row_static(db, name);
	row_int(db, property);
	row_text(db, value);
	row_end(db);
}

static void add_system_number(struct database *db, enum system_property property, const char *name,
                              uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	add_system(db, property, name, number ? text : NULL);
}

static void add_machine(struct database *db, const struct run_info *run)
{
	add_system(db, SYSTEM_HOSTNAME, "Hostname", run->hostname);
	add_system(db, SYSTEM_KERNEL_VERSION, "KernelVersion", run->kernel_release);
	add_system(db, SYSTEM_DRIVER_VERSION, "DriverVersion", run->driver_version);
	add_system(db, SYSTEM_CPU_ARCHITECTURE, "CpuArchitecture", run->machine);
	add_system_number(db, SYSTEM_CPU_CORES, "CpuCores", run->cpus);
	add_system_number(db, SYSTEM_MEMORY, "PhysicalMemory", run->memory_bytes);
	add_system_number(db, SYSTEM_GPUS, "GpuCount", run->n_gpus);
}

/* ---- GPUs ----------------------------------------------------------------------------------- */

static void add_nulls(struct database *db, int n)
{
	while (n--)
		row_null(db);
}

static void add_number(struct database *db, uint64_t number)
{
	add_or_null(db, number, number);
}

/* Nsight Systems writes the domain of a PCI bus with four digits, NVML with eight. */
static const char *short_bus(const char *bus)
{
	return strlen(bus) == 16 && !strncmp(bus, "0000", 4) ? bus + 4 : bus;
}

static void add_text_or_null(struct database *db, const char *text)
{
	row_text(db, *text ? text : NULL);
}

/* From registers of a block to the sizes of grids. */
static void add_limits(struct database *db, const struct gpu_limits *limits)
{
	static const uint32_t block[] = { GPU_THREADS_PER_BLOCK, 1024, 1024, 64 };
	static const uint32_t grid[] = { 2147483647, 65535, 65535 };

	if (!limits) {
		add_nulls(db, 16);
		return;
	}
	row_int(db, limits->registers);
	row_int(db, GPU_BLOCK_SHMEM_BYTES);
	row_int(db, (int64_t)limits->block_shmem_kib << 10);
	row_int(db, (int64_t)limits->shmem_kib << 10);
	row_int(db, limits->registers);
	row_int(db, GPU_THREADS_PER_WARP);
	row_null(db); /* asynchronous engines */
	row_int(db, limits->warps);
	row_int(db, limits->blocks);
	for (int i = 0; i < 4; i++)
		row_int(db, block[i]);
	for (int i = 0; i < 3; i++)
		row_int(db, grid[i]);
}

static void add_gpu(struct database *db, const struct run_gpu *gpu, int64_t number)
{
	const struct gpu_limits *limits = gpu_limits(gpu->major, gpu->minor);

	row_begin(db, TABLE_GPU);
	row_int(db, MACHINE);
	row_int(db, number);
	add_text_or_null(db, gpu->name);
	add_text_or_null(db, short_bus(gpu->bus));
	row_int(db, 1); /* NVML tells of GPUs on a bus */
	row_null(db);   /* L2 cache */
	add_number(db, gpu->memory_bytes);
	add_number(db, gpu->memory_bandwidth);
	add_number(db, gpu->clock_hz);
	add_number(db, gpu->multiprocessors);
	row_null(db); /* PerfWorks' number */
	add_text_or_null(db, gpu->uuid);
	add_nulls(db, 2); /* LUID, chip */
	row_int(db, number);
	add_nulls(db, 4); /* paths, revision, mask */
	add_or_null(db, GPU_CONSTANT_BYTES, limits);
	row_null(db); /* instructions a cycle */
	add_limits(db, limits);
	for (int i = 0; i < 2; i++) { /* of CUDA, and of the multiprocessors: the same */
		add_or_null(db, gpu->major, gpu->major);
		add_or_null(db, gpu->minor, gpu->major);
	}
	row_end(db);
}

/* ---- devices of processes ------------------------------------------------------------------- */

void sqlite_note_device(struct sqlite *sqlite, const struct event *event)
{
	struct sqlite_devices *known;

	sqlite->devices = by_id_room(sqlite->devices, &sqlite->n_devices, sizeof(*sqlite->devices),
	                             event->process->id);
	known = &sqlite->devices[event->process->id];
	known->pid = event->process->pid;
	if (event->activity->device < DEVICES_MOST)
		known->used |= 1ull << event->activity->device;
}

/*
 * Which GPU a process calls 0 depends on CUDA_VISIBLE_DEVICES. It is known where there is just one,
 * and does not matter for what is the same of all.
 */
static bool all_alike(const struct run_info *run)
{
	for (size_t i = 1; i < run->n_gpus; i++) {
		if (run->gpus[i].multiprocessors != run->gpus[0].multiprocessors)
			return false;
	}
	return run->n_gpus;
}

static void add_device(struct database *db, const struct run_info *run, uint32_t pid, int device)
{
	bool known = run->n_gpus == 1 && device == 0;

	row_begin(db, TABLE_CUDA_DEVICE);
	add_or_null(db, 0, known);
	row_int(db, device);
	row_int(db, pid);
	row_text(db, known && *run->gpus[0].uuid ? run->gpus[0].uuid : NULL);
	if (all_alike(run))
		add_number(db, run->gpus[0].multiprocessors);
	else
		row_null(db);
	row_end(db);
}

void sqlite_add_target(struct sqlite *sqlite, const struct run_info *run)
{
	struct database *db = sqlite->db;

	add_machine(db, run);
	for (size_t i = 0; i < run->n_gpus; i++)
		add_gpu(db, &run->gpus[i], (int64_t)i);
	for (size_t i = 0; i < sqlite->n_devices; i++) {
		for (int device = 0; device < DEVICES_MOST; device++) {
			if (sqlite->devices[i].used & 1ull << device)
				add_device(db, run, sqlite->devices[i].pid, device);
		}
	}
}
