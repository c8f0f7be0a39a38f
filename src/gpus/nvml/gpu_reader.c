// SPDX-License-Identifier: MIT
/*
 * Reads one GPU by NVML, on the thread of that GPU: every call can take seconds.
 */
#include "gpus/nvml/nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/xalloc.h"
#include "base/clock.h"

#define ALL_LINKS   UINT32_MAX /* scope of a field */
#define XIDS_A_READ 64         /* the rest comes with the next one */
#define PAUSE_TIMES 4          /* intervals without a reading are a pause */
#define SHARES_ROOM 1024       /* some of each process */
/* As old as one may be. On an H200 with driver 580 samples came up to 2.2 s late, each process's at
 * its own time, and were told of however old they were. */
#define SHARES_US   3000000
#define KIB         1024
#define MHZ         1000000
#define NO_INSTANCE UINT32_MAX

struct gpu_reader {
	const struct nvml *nvml;
	uint32_t index;
	gpu_handle handle; /* NULL: not got yet, or lost */
	int result;        /* of the GPU as a whole: a call said that it is lost */
	bool xids_wanted;  /* was tried */
	nvml_event_set events;
	struct gpm *gpm;
	enum gpu_metrics_source source;
	uint64_t utilization_ns;
	struct process_info infos[NVML_PROCESSES_ROOM];
	struct process_utilization shares[SHARES_ROOM];
};

struct gpu_reader *gpu_reader_new(const struct nvml *nvml, uint32_t index)
{
	struct gpu_reader *reader = xcalloc(1, sizeof(*reader));

	reader->nvml = nvml;
	reader->index = index;
	return reader;
}

/* ---- the handle and what hangs on it ------------------------------------------------------- */

static void let_go(struct gpu_reader *reader)
{
	if (reader->events)
		reader->nvml->event_free(reader->events);
	gpm_close(reader->gpm);
	reader->events = NULL;
	reader->xids_wanted = false;
	reader->gpm = NULL;
	reader->handle = NULL;
	reader->source = GPU_METRICS_NONE;
}

void gpu_reader_free(struct gpu_reader *reader)
{
	if (!reader)
		return;
	let_go(reader);
	free(reader);
}

/* True for NVML_SUCCESS. A GPU that is lost is remembered. */
static bool good(struct gpu_reader *reader, int result)
{
	if (result == NVML_GPU_IS_LOST || result == NVML_RESET_REQUIRED)
		reader->result = result;
	return result == NVML_SUCCESS;
}

static void want_xids(struct gpu_reader *reader)
{
	const struct nvml *nvml = reader->nvml;

	reader->xids_wanted = true;
	if (!nvml->event_set || !nvml->event_free || !nvml->event_register || !nvml->event_wait ||
	    nvml->event_set(&reader->events) != NVML_SUCCESS)
		return;
	if (nvml->event_register(reader->handle, NVML_EVENT_XID, reader->events) == NVML_SUCCESS)
		return;
	nvml->event_free(reader->events);
	reader->events = NULL;
}

static bool get_handle(struct gpu_reader *reader)
{
	struct utilization utilization;

	reader->result = NVML_SUCCESS;
	if (reader->handle)
		return true;
	reader->result = reader->nvml->handle(reader->index, &reader->handle);
	if (reader->result != NVML_SUCCESS) {
		reader->handle = NULL;
		return false;
	}
	reader->gpm = gpm_open(reader->nvml, reader->handle);
	if (reader->gpm)
		reader->source = GPU_METRICS_GPM;
	else if (reader->nvml->utilization &&
	         good(reader, reader->nvml->utilization(reader->handle, &utilization)))
		reader->source = GPU_METRICS_UTILIZATION;
	return true;
}

enum gpu_metrics_source gpu_reader_source(const struct gpu_reader *reader)
{
	return reader->source;
}

/* ---- metrics ------------------------------------------------------------------------------- */

/* NVML's own period is 1/6 s to 1 s, so that two samples in a row can say the same. */
static bool read_utilization(struct gpu_reader *reader, struct gpu_metrics_sample *sample)
{
	struct utilization utilization;
	uint64_t before_ns = reader->utilization_ns;

	if (!good(reader, reader->nvml->utilization(reader->handle, &utilization)))
		return false;
	for (enum gpu_metric i = 0; i < GPU_METRICS; i++)
		sample->value[i] = GPU_UNKNOWN;
	if (utilization.gpu <= 100)
		sample->value[GPU_METRIC_BUSY] = utilization.gpu * 100;
	if (utilization.memory <= 100)
		sample->value[GPU_METRIC_MEMORY_BUSY] = utilization.memory * 100;
	sample->source = GPU_METRICS_UTILIZATION;
	sample->begin_ns = before_ns;
	sample->end_ns = reader->utilization_ns = clock_now_ns();
	return before_ns != 0;
}

static bool read_metrics(struct gpu_reader *reader, uint64_t interval_ns,
                         struct gpu_metrics_sample *sample, uint64_t *graphics_ns)
{
	bool any;
	int result;

	*graphics_ns = 0;
	sample->gpu = reader->index;
	if (reader->source == GPU_METRICS_UTILIZATION)
		return read_utilization(reader, sample);
	if (reader->source != GPU_METRICS_GPM)
		return false;
	any = gpm_read(reader->gpm, reader->handle, PAUSE_TIMES * interval_ns, sample, graphics_ns,
	               &result);
	good(reader, result);
	return any;
}

bool gpu_reader_metrics(struct gpu_reader *reader, uint64_t interval_ns,
                        struct gpu_metrics_sample *sample, uint64_t *graphics_ns)
{
	bool any = get_handle(reader) && read_metrics(reader, interval_ns, sample, graphics_ns);

	if (reader->result != NVML_SUCCESS)
		let_go(reader);
	return any;
}

/* ---- values -------------------------------------------------------------------------------- */

struct call_row {
	enum gpu_value value;
	size_t offset; /* of the function in struct nvml */
	int64_t unit;
};

#define ROW(value, member, unit)                                                                   \
	{                                                                                          \
		value, offsetof(struct nvml, member), unit                                         \
	}

static const struct call_row unsigned_calls[] = {
	ROW(GPU_VALUE_POWER_MW, power, 1),
	ROW(GPU_VALUE_POWER_LIMIT_MW, power_limit, 1),
	ROW(GPU_VALUE_PCIE_GENERATION, pcie_generation, 1),
	ROW(GPU_VALUE_PCIE_WIDTH, pcie_width, 1),
};

static const struct call_row long_calls[] = {
	ROW(GPU_VALUE_ENERGY_MJ, energy, 1),
	ROW(GPU_VALUE_THROTTLE_REASONS, throttle, 1),
};

struct field_row {
	enum gpu_value value;
	unsigned id; /* NVML_FI_DEV_* */
	unsigned scope;
	int64_t unit;
};

/* What a driver does not know it says of each field by itself. */
static const struct field_row field_rows[] = {
	{ GPU_VALUE_ECC_CORRECTED, 3, 0, 1 },
	{ GPU_VALUE_ECC_UNCORRECTED, 4, 0, 1 },
	{ GPU_VALUE_ECC_CORRECTED_EVER, 5, 0, 1 },
	{ GPU_VALUE_ECC_UNCORRECTED_EVER, 6, 0, 1 },
	{ GPU_VALUE_RETIRED_PAGES_CORRECTED, 29, 0, 1 },
	{ GPU_VALUE_RETIRED_PAGES_UNCORRECTED, 30, 0, 1 },
	{ GPU_VALUE_RETIRED_PAGES_PENDING, 31, 0, 1 },
	{ GPU_VALUE_NVLINK_FLIT_ERRORS, 38, 0, 1 },
	{ GPU_VALUE_NVLINK_DATA_ERRORS, 45, 0, 1 },
	{ GPU_VALUE_NVLINK_REPLAYS, 52, 0, 1 },
	{ GPU_VALUE_NVLINK_RECOVERIES, 59, 0, 1 },
	{ GPU_VALUE_MEMORY_TEMPERATURE_C, 82, 0, 1 },
	{ GPU_VALUE_PCIE_REPLAYS, 94, 0, 1 },
	{ GPU_VALUE_NVLINK_TX_BYTES, 138, ALL_LINKS, KIB },
	{ GPU_VALUE_NVLINK_RX_BYTES, 139, ALL_LINKS, KIB },
	{ GPU_VALUE_REMAPPED_ROWS_CORRECTED, 142, 0, 1 },
	{ GPU_VALUE_REMAPPED_ROWS_UNCORRECTED, 143, 0, 1 },
	{ GPU_VALUE_REMAPPED_ROWS_PENDING, 144, 0, 1 },
	{ GPU_VALUE_REMAPPED_ROWS_FAILED, 145, 0, 1 },
	{ GPU_VALUE_PCIE_TX_BYTES, 197, 0, 1 },
	{ GPU_VALUE_PCIE_RX_BYTES, 198, 0, 1 },
};

/* GPU_UNKNOWN for what is negative or too large. */
static int64_t in_unit(uint64_t number, int64_t unit)
{
	return number <= (uint64_t)(INT64_MAX / unit) ? (int64_t)number * unit : GPU_UNKNOWN;
}

/*
 * A total of bytes in 32 bits goes round in less than a second, so it tells nothing; all other
 * totals of NVML grow slowly.
 */
static bool field_number(const struct field_row *row, const struct nvml_field *field,
                         uint64_t *number)
{
	bool is_bytes =
		row->value == GPU_VALUE_PCIE_TX_BYTES || row->value == GPU_VALUE_PCIE_RX_BYTES;

	switch (field->type) {
	case NVML_TYPE_U32:
	case NVML_TYPE_S32:
		*number = field->value.u32;
		return !is_bytes;
	case NVML_TYPE_U16:
		*number = field->value.u32 & UINT16_MAX;
		return !is_bytes;
	case NVML_TYPE_ULONG:
	case NVML_TYPE_U64:
	case NVML_TYPE_S64:
		*number = field->value.u64;
		return true;
	default:
		return false;
	}
}

static void read_fields(struct gpu_reader *reader, int64_t *value)
{
	struct nvml_field fields[ARRAY_SIZE(field_rows)] = { 0 };
	uint64_t number;

	for (size_t i = 0; i < ARRAY_SIZE(field_rows); i++) {
		fields[i].id = field_rows[i].id;
		fields[i].scope = field_rows[i].scope;
		fields[i].result = NVML_NOT_SUPPORTED;
	}
	if (!reader->nvml->fields ||
	    !good(reader, reader->nvml->fields(reader->handle, (int)ARRAY_SIZE(fields), fields)))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(field_rows); i++) {
		if (good(reader, fields[i].result) &&
		    field_number(&field_rows[i], &fields[i], &number))
			value[field_rows[i].value] = in_unit(number, field_rows[i].unit);
	}
}

/* Drivers that lack the fields have had this call for longer. */
static void read_ecc(struct gpu_reader *reader, int64_t *value)
{
	static const enum gpu_value values[2][2] = {
		{ GPU_VALUE_ECC_CORRECTED, GPU_VALUE_ECC_CORRECTED_EVER },
		{ GPU_VALUE_ECC_UNCORRECTED, GPU_VALUE_ECC_UNCORRECTED_EVER },
	};
	unsigned long long count;

	for (int kind = 0; kind < 2 && reader->nvml->ecc; kind++) {
		for (int counter = 0; counter < 2; counter++) {
			int64_t *one = &value[values[kind][counter]];

			if (*one == GPU_UNKNOWN &&
			    good(reader, reader->nvml->ecc(reader->handle, kind, counter, &count)))
				*one = in_unit(count, 1);
		}
	}
}

static void read_calls(struct gpu_reader *reader, int64_t *value)
{
	const char *nvml = (const char *)reader->nvml;

	for (size_t i = 0; i < ARRAY_SIZE(unsigned_calls); i++) {
		const struct call_row *row = &unsigned_calls[i];
		int (*call)(gpu_handle, unsigned *) =
			*(int (*const *)(gpu_handle, unsigned *))(nvml + row->offset);
		unsigned number;

		if (call && good(reader, call(reader->handle, &number)))
			value[row->value] = in_unit(number, row->unit);
	}
	for (size_t i = 0; i < ARRAY_SIZE(long_calls); i++) {
		const struct call_row *row = &long_calls[i];
		int (*call)(gpu_handle, unsigned long long *) =
			*(int (*const *)(gpu_handle, unsigned long long *))(nvml + row->offset);
		unsigned long long number;

		if (call && good(reader, call(reader->handle, &number)))
			value[row->value] = in_unit(number, row->unit);
	}
}

static void read_clocks(struct gpu_reader *reader, int64_t *value)
{
	const struct nvml *nvml = reader->nvml;
	unsigned number;
	int performance;

	if (nvml->clock && good(reader, nvml->clock(reader->handle, NVML_CLOCK_SM, &number)))
		value[GPU_VALUE_SM_CLOCK_HZ] = in_unit(number, MHZ);
	if (nvml->clock && good(reader, nvml->clock(reader->handle, NVML_CLOCK_MEM, &number)))
		value[GPU_VALUE_MEMORY_CLOCK_HZ] = in_unit(number, MHZ);
	if (nvml->temperature &&
	    good(reader, nvml->temperature(reader->handle, NVML_SENSOR_GPU, &number)))
		value[GPU_VALUE_TEMPERATURE_C] = in_unit(number, 1);
	/* 32: not known */
	if (nvml->performance && good(reader, nvml->performance(reader->handle, &performance)) &&
	    performance >= 0 && performance < 32)
		value[GPU_VALUE_PERFORMANCE_STATE] = performance;
}

static bool read_memory(struct gpu_reader *reader, gpu_handle handle, int64_t *used, int64_t *free,
                        int64_t *total)
{
	struct memory_v2 v2 = { .version = MEMORY_V2 };
	struct nvml_memory v1;

	if (reader->nvml->memory_v2 && good(reader, reader->nvml->memory_v2(handle, &v2)))
		v1 = (struct nvml_memory){ v2.total, v2.free, v2.used };
	else if (!reader->nvml->memory || !good(reader, reader->nvml->memory(handle, &v1)))
		return false;
	*used = in_unit(v1.used, 1);
	*free = in_unit(v1.free, 1);
	*total = in_unit(v1.total, 1);
	return true;
}

/* Of a GPU that is lost on the way, the values stay those of the last time. */
static void read_values(struct gpu_reader *reader, struct gpu_state *state)
{
	const struct nvml *nvml = reader->nvml;
	struct utilization utilization;
	int64_t value[GPU_VALUES];

	for (size_t i = 0; i < GPU_VALUES; i++)
		value[i] = GPU_UNKNOWN;
	if (nvml->utilization && good(reader, nvml->utilization(reader->handle, &utilization))) {
		value[GPU_VALUE_BUSY_PERCENT] = utilization.gpu;
		value[GPU_VALUE_MEMORY_BUSY_PERCENT] = utilization.memory;
	}
	read_memory(reader, reader->handle, &value[GPU_VALUE_MEMORY_USED_BYTES],
	            &value[GPU_VALUE_MEMORY_FREE_BYTES], &value[GPU_VALUE_MEMORY_TOTAL_BYTES]);
	read_calls(reader, value);
	read_clocks(reader, value);
	read_fields(reader, value);
	read_ecc(reader, value);
	if (reader->result == NVML_SUCCESS)
		memcpy(state->value, value, sizeof(value));
}

/* ---- names, MIG devices, processes, Xids --------------------------------------------------- */

static void read_text(struct gpu_reader *reader, gpu_handle handle,
                      int (*call)(gpu_handle, char *, unsigned), char *text, size_t size)
{
	char read[96] = "";

	if (!call || !good(reader, call(handle, read, sizeof(read))))
		return;
	read[sizeof(read) - 1] = '\0';
	snprintf(text, size, "%s", read);
}

static void read_names(struct gpu_reader *reader, struct gpu_state *state)
{
	struct pci pci;

	read_text(reader, reader->handle, reader->nvml->name, state->model, sizeof(state->model));
	read_text(reader, reader->handle, reader->nvml->uuid, state->uuid, sizeof(state->uuid));
	if (reader->nvml->pci && good(reader, reader->nvml->pci(reader->handle, &pci)))
		snprintf(state->bus, sizeof(state->bus), "%.*s", (int)sizeof(pci.bus_id) - 1,
		         pci.bus_id);
}

static uint32_t read_instance(struct gpu_reader *reader, gpu_handle mig,
                              int (*call)(gpu_handle, unsigned *))
{
	unsigned id;

	return call && good(reader, call(mig, &id)) ? id : NO_INSTANCE;
}

static void read_one_mig(struct gpu_reader *reader, uint32_t index, struct gpu_state *state)
{
	struct gpu_mig *mig = &state->mig[state->n_mig];
	gpu_handle handle;
	int64_t free;

	if (!good(reader, reader->nvml->mig_handle(reader->handle, index, &handle)))
		return;
	memset(mig, 0, sizeof(*mig));
	mig->index = index;
	mig->gpu_instance = read_instance(reader, handle, reader->nvml->gpu_instance);
	mig->compute_instance = read_instance(reader, handle, reader->nvml->compute_instance);
	read_text(reader, handle, reader->nvml->name, mig->name, sizeof(mig->name));
	read_text(reader, handle, reader->nvml->uuid, mig->uuid, sizeof(mig->uuid));
	mig->memory_used_bytes = mig->memory_total_bytes = GPU_UNKNOWN;
	read_memory(reader, handle, &mig->memory_used_bytes, &free, &mig->memory_total_bytes);
	state->n_mig++;
}

static void read_mig(struct gpu_reader *reader, struct gpu_state *state)
{
	unsigned now = 0, pending;

	state->n_mig = 0;
	state->mig_mode = reader->nvml->mig_mode &&
	                  good(reader, reader->nvml->mig_mode(reader->handle, &now, &pending)) &&
	                  now;
	if (!state->mig_mode || !reader->nvml->mig_handle)
		return;
	for (uint32_t i = 0; i < GPU_STATE_MIG_MAX; i++)
		read_one_mig(reader, i, state);
}

static int16_t mig_of(const struct gpu_state *state, const struct process_info *info)
{
	for (uint32_t i = 0; i < state->n_mig; i++) {
		if (state->mig[i].gpu_instance == info->gpu_instance &&
		    state->mig[i].compute_instance == info->compute_instance)
			return (int16_t)i;
	}
	return -1;
}

static void read_processes(struct gpu_reader *reader, struct gpu_state *state)
{
	unsigned n = GPU_PROCESSES_MAX;
	int result;

	state->n_processes = state->processes_left_out = 0;
	state->processes_told = false;
	if (!reader->nvml->processes)
		return;
	result = reader->nvml->processes(reader->handle, &n, reader->infos);
	if (result == NVML_INSUFFICIENT_SIZE)
		state->processes_left_out = n; /* it fills in none of them */
	state->processes_told = good(reader, result) || result == NVML_INSUFFICIENT_SIZE;
	if (result != NVML_SUCCESS)
		return;
	if (n > GPU_PROCESSES_MAX)
		n = GPU_PROCESSES_MAX;
	for (unsigned i = 0; i < n; i++) {
		const struct process_info *info = &reader->infos[i];

		if (state->n_processes == GPU_STATE_PROCESSES_MAX) {
			state->processes_left_out++;
			continue;
		}
		state->processes[state->n_processes++] = (struct gpu_state_process){
			info->pid, mig_of(state, info), GPU_UNKNOWN,
			info->used_bytes == ~0ull ? GPU_UNKNOWN : in_unit(info->used_bytes, 1)
		};
	}
}

static int16_t share_of(const struct gpu_reader *reader, unsigned n, uint32_t pid,
                        uint64_t since_us)
{
	const struct process_utilization *newest = NULL;

	for (unsigned i = 0; i < n; i++) {
		const struct process_utilization *share = &reader->shares[i];

		if (share->pid == pid && share->time_us >= since_us &&
		    (!newest || share->time_us > newest->time_us))
			newest = share;
	}
	return !newest ? 0 : newest->sm <= 100 ? (int16_t)newest->sm : GPU_UNKNOWN;
}

/* The driver tells of those that used the GPU lately: who is not among them did not. */
static void read_shares(struct gpu_reader *reader, struct gpu_state *state)
{
	uint64_t since_us = clock_of_ns(CLOCK_REALTIME) / 1000 - SHARES_US;
	unsigned n = SHARES_ROOM;
	int result;

	if (!reader->nvml->process_utilization || !state->n_processes || state->mig_mode)
		return;
	result = reader->nvml->process_utilization(reader->handle, reader->shares, &n, since_us);
	if (result == NVML_NOT_FOUND)
		n = 0;
	else if (!good(reader, result) || n > SHARES_ROOM)
		return;
	for (uint32_t i = 0; i < state->n_processes; i++)
		state->processes[i].busy_percent =
			share_of(reader, n, state->processes[i].pid, since_us);
}

static void count_xid(struct gpu_xids *xids, uint32_t code)
{
	xids->total++;
	xids->last = code;
	xids->last_ns = clock_now_ns();
	gpu_xids_add_code(xids, code, 1);
}

static void read_xids(struct gpu_reader *reader, struct gpu_state *state)
{
	struct nvml_event event;

	if (!reader->xids_wanted)
		want_xids(reader);
	state->xids_told = reader->events != NULL;
	for (size_t i = 0; i < XIDS_A_READ && reader->events; i++) {
		memset(&event, 0, sizeof(event));
		if (!good(reader, reader->nvml->event_wait(reader->events, &event, 0)))
			return;
		if (event.type == NVML_EVENT_XID)
			count_xid(&state->xids, (uint32_t)event.data);
	}
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void fail(struct gpu_reader *reader, struct gpu_state *state)
{
	bool lost = reader->result == NVML_GPU_IS_LOST || reader->result == NVML_RESET_REQUIRED;

	state->answer = lost ? GPU_ANSWER_LOST : GPU_ANSWER_FAILED;
	snprintf(state->why, sizeof(state->why), "%s", nvml_error(reader->nvml, reader->result));
	state->failures++;
	let_go(reader);
}

void gpu_reader_state(struct gpu_reader *reader, uint64_t interval_ns, struct gpu_state *state)
{
	struct gpu_metrics_sample sample = { 0 };
	uint64_t graphics_ns;

	state->index = reader->index;
	if (!get_handle(reader)) {
		fail(reader, state);
		return;
	}
	read_names(reader, state);
	read_xids(reader, state); /* first: of a GPU that is lost it may be what says why */
	read_values(reader, state);
	if (reader->result == NVML_SUCCESS) {
		read_mig(reader, state);
		read_processes(reader, state);
		read_shares(reader, state);
	}
	if (read_metrics(reader, interval_ns, &sample, &graphics_ns))
		state->metrics = sample;
	if (reader->result != NVML_SUCCESS) {
		fail(reader, state);
		return;
	}
	state->answer = GPU_ANSWER_GOOD;
	state->why[0] = '\0';
	state->read_ns = clock_now_ns();
	state->reads++;
}
