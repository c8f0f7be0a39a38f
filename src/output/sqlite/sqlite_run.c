// SPDX-License-Identifier: MIT
/* How a trace was recorded, what it missed, and the machine that it is of. */
#include <string.h>
#include <time.h>

#include "analysis/by_id.h"
#include "analysis/missed.h"
#include "base/array.h"
#include "gpus/gpu_metrics.h"
#include "output/sqlite/sqlite.h"

/*
 * The machine that a trace is of: itself, its GPUs, and which of them each process used. Sizes that
 * follow from a GPU's compute capability are taken from there.
 */

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
	ROW(db, TABLE_SYSTEM, CELL(MACHINE), CELL_TEXT(""), CELL_TEXT(name), CELL(property),
	    CELL_SAFE(value));
}

static void add_system_number(struct database *db, enum system_property property, const char *name,
                              uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%lu", number);
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

/* Nsight Systems writes the domain of a PCI bus with four digits, NVML with eight. */
static const char *short_bus(const char *bus)
{
	return strlen(bus) == 16 && !strncmp(bus, "0000", 4) ? bus + 4 : bus;
}

/* NULL where it is empty. */
static struct cell cell_text_known(const char *text)
{
	return CELL_SAFE(*text ? text : NULL);
}

static void add_gpu(struct database *db, const struct run_gpu *gpu, int64_t number)
{
	static const uint32_t block[] = { 1024, 1024, 64 };
	static const uint32_t grid[] = { 2147483647, 65535, 65535 };
	static const struct gpu_limits none;
	const struct gpu_limits *limits = gpu_limits(gpu->major, gpu->minor);
	bool known = limits;

	limits = known ? limits : &none;
	ROW(db, TABLE_GPU, CELL(MACHINE), CELL(number), cell_text_known(gpu->name),
	    cell_text_known(short_bus(gpu->bus)), CELL(1) /* NVML tells of GPUs on a bus */,
	    CELL_NONE /* L2 cache */, CELL_KNOWN(gpu->memory_bytes),
	    CELL_KNOWN(gpu->memory_bandwidth), CELL_KNOWN(gpu->clock_hz),
	    CELL_KNOWN(gpu->multiprocessors), CELL_NONE /* PerfWorks' number */,
	    cell_text_known(gpu->uuid), CELL_NONE, CELL_NONE /* LUID, chip */, CELL(number),
	    CELL_NONE, CELL_NONE, CELL_NONE, CELL_NONE /* paths, revision, mask */,
	    CELL_IF(GPU_CONSTANT_BYTES, known), CELL_NONE /* instructions a cycle */,
	    /* From registers of a block to the sizes of grids. */
	    CELL_IF(limits->registers, known), CELL_IF(GPU_BLOCK_SHMEM_BYTES, known),
	    CELL_IF((uint64_t)limits->block_shmem_kib << 10, known),
	    CELL_IF((uint64_t)limits->shmem_kib << 10, known), CELL_IF(limits->registers, known),
	    CELL_IF(GPU_THREADS_PER_WARP, known), CELL_NONE /* asynchronous engines */,
	    CELL_IF(limits->warps, known), CELL_IF(limits->blocks, known),
	    CELL_IF(GPU_THREADS_PER_BLOCK, known), CELL_THREE(block, known),
	    CELL_THREE(grid, known),
	    /* Of CUDA, and of the multiprocessors: the same. */
	    CELL_KNOWN(gpu->major), CELL_IF(gpu->minor, gpu->major), CELL_KNOWN(gpu->major),
	    CELL_IF(gpu->minor, gpu->major));
}

/* ---- devices of processes ------------------------------------------------------------------- */

void sqlite_note_device(struct sqlite *sqlite, const struct event *event)
{
	struct sqlite_devices *known;

	known = BY_ID(sqlite->devices, sqlite->n_devices, event->process->id);
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

	ROW(db, TABLE_CUDA_DEVICE, CELL_IF(0, known), CELL(device), CELL(pid),
	    CELL_SAFE(known && *run->gpus[0].uuid ? run->gpus[0].uuid : NULL),
	    CELL_KNOWN(all_alike(run) ? run->gpus[0].multiprocessors : 0));
}

static void sqlite_add_target(struct sqlite *sqlite, const struct run_info *run)
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

/* ---- how it was recorded -----------------------------------------------------------------------
 */

#define NS 1000000000ll

static void add_pair(struct database *db, enum nsys_table table, const char *name,
                     const char *value)
{
	if (!value)
		return;
	ROW(db, table, CELL_TEXT(name), CELL_SAFE(value));
}

static void add_start(struct database *db, const struct run_info *run)
{
	int64_t ns = (int64_t)run->begin_ns + run->realtime_offset_ns;
	int64_t whole_ns = (int64_t)(run->end_ns - run->begin_ns);
	time_t seconds = ns / NS;
	char utc[40], local[40];
	struct tm tm;

	strftime(utc, sizeof(utc), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));
	strftime(local, sizeof(local), "%Y-%m-%dT%H:%M:%S%z", localtime_r(&seconds, &tm));
	ROW(db, TABLE_START_TIME, CELL(ns), CELL_SAFE(utc), CELL_SAFE(local));
	ROW(db, TABLE_SESSION, CELL(MACHINE), CELL(whole_ns), CELL(0), CELL(whole_ns));
}

static void add_versions(struct database *db)
{
	static const struct {
		const char *name;
		int number;
	} parts[] = { { "EXPORT_SCHEMA_VERSION_MAJOR", NSYS_SCHEMA_MAJOR },
		      { "EXPORT_SCHEMA_VERSION_MINOR", NSYS_SCHEMA_MINOR },
		      { "EXPORT_SCHEMA_VERSION_MICRO", NSYS_SCHEMA_MICRO } };
	char text[48];

	add_pair(db, TABLE_EXPORT, "EXPORT_PRODUCT_NAME", "cuscope");
	add_pair(db, TABLE_EXPORT, "EXPORT_PRODUCT_VERSION", CUSCOPE_VERSION);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		snprintf(text, sizeof(text), "%d", parts[i].number);
		add_pair(db, TABLE_EXPORT, parts[i].name, text);
	}
	snprintf(text, sizeof(text), "%d.%d.%d", NSYS_SCHEMA_MAJOR, NSYS_SCHEMA_MINOR,
	         NSYS_SCHEMA_MICRO);
	add_pair(db, TABLE_EXPORT, "EXPORT_SCHEMA_VERSION", text);
}

/* What is to be known before the rest is believed, at the end of the trace's time. */
static void add_diagnostic(struct database *db, const struct run_info *run, int severity,
                           uint32_t pid, const char *text)
{
	ROW(db, TABLE_DIAGNOSTIC, CELL((int64_t)(run->end_ns - run->begin_ns)),
	    CELL(NSYS_TIME_OF_TARGET), CELL(NSYS_SOURCE_ANALYSIS), CELL(severity), CELL_SAFE(text),
	    CELL_IF((uint64_t)(MACHINE | (int64_t)(pid & LOW_24) << PID_SHIFT), pid));
}

static void add_lost(struct database *db, const struct run_info *run, enum lost_reason reason)
{
	AT_END(buf_free) struct buf text = { 0 };

	ROW(db, TABLE_LOST, CELL_TEXT(missed_lost_key(reason)), CELL_TEXT(lost_reason_text(reason)),
	    CELL((int64_t)run->lost[reason]));
	buf_printf(&text, "%lu events: %s", run->lost[reason], lost_reason_text(reason));
	add_diagnostic(db, run, NSYS_SEVERITY_WARNING, 0, text.data);
}

static void add_miss(struct database *db, const struct run_info *run, const struct miss *miss)
{
	AT_END(buf_free) struct buf text = { 0 };

	ROW(db, TABLE_MISSED, CELL_TEXT(missed_kind_key(miss->kind)), CELL_SAFE(miss->name),
	    CELL_SAFE(miss->lib), CELL_KNOWN(miss->pid), CELL_SAFE(miss->why));
	buf_puts(&text, missed_kind_key(miss->kind));
	if (miss->name)
		buf_printf(&text, " %s", miss->name);
	if (miss->lib)
		buf_printf(&text, " (%s)", miss->lib);
	if (miss->why)
		buf_printf(&text, ": %s", miss->why);
	add_diagnostic(db, run, NSYS_SEVERITY_WARNING, miss->pid, text.data);
}

static void add_stack_count(struct database *db, const char *kind, const char *text, uint64_t count)
{
	if (!count)
		return;
	ROW(db, TABLE_STACK_COUNT, CELL_TEXT(kind), CELL_TEXT(text), CELL((int64_t)count));
}

/* What is missing beside stacks that end early: a warning each. */
static void add_stacks_missed(struct database *db, const struct run_info *run)
{
	for (size_t i = 0; i < STACKS_MISSED_COUNT; i++) {
		uint64_t n = run->stacks.missed[i];
		const char *text = stacks_missed_text((enum stacks_missed)i, n);
		AT_END(buf_free) struct buf line = { 0 };

		if (!n)
			continue;
		add_stack_count(db, missed_stacks_key((enum stacks_missed)i), text, n);
		buf_printf(&line, "%lu %s", n, text);
		add_diagnostic(db, run, NSYS_SEVERITY_WARNING, 0, line.data);
	}
}

static void add_stacks(struct sqlite *sqlite, const struct run_info *run)
{
	const struct stack_counts *counts = &sqlite->sink.stacks;
	struct database *db = sqlite->db;
	struct buf line = { 0 };

	add_stack_count(db, "whole", "whole", stack_counts_whole(counts));
	for (int end = STACK_WHOLE + 1; end < STACK_END_COUNT; end++)
		add_stack_count(db, "cut", stack_end_text((enum stack_end)end), counts->ends[end]);
	add_stack_count(db, "python_cut", "lack frames of Python", counts->python_cut);
	add_stack_count(db, "without", "are not known", counts->without);
	stack_counts_text(counts, &line);
	if (line.len)
		add_diagnostic(db, run,
		               stack_counts_whole(counts) == stack_counts_all(counts)
		                       ? NSYS_SEVERITY_INFO
		                       : NSYS_SEVERITY_WARNING,
		               0, line.data);
	buf_free(&line);
	add_stacks_missed(db, run);
}

static void add_missed(struct database *db, const struct run_info *run)
{
	struct buf file = { 0 };

	if (missed_of_file(run, &file))
		add_diagnostic(db, run, NSYS_SEVERITY_ERROR, 0, file.data);
	buf_free(&file);
	for (size_t i = 0; i < LOST_COUNT; i++) {
		if (run->lost[i])
			add_lost(db, run, i);
	}
	for (size_t i = 0; i < run->n_misses; i++)
		add_miss(db, run, &run->misses[i]);
}

void sqlite_add_run(struct sqlite *sqlite, const struct run_info *run)
{
	struct database *db = sqlite->db;

	add_start(db, run);
	sqlite_add_target(sqlite, run);
	add_pair(db, TABLE_CAPTURE, "COMMAND", run->command);
	add_pair(db, TABLE_CAPTURE, "RETURNS", run->returns ? "1" : "0");
	add_pair(db, TABLE_CAPTURE, "CUT_SHORT", run->cut_short ? "1" : "0");
	add_pair(db, TABLE_CAPTURE, "DAMAGED", run->damaged_chunks ? "1" : "0");
	add_versions(db);
	add_missed(db, run);
	add_stacks(sqlite, run);
}
