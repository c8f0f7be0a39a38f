/* SPDX-License-Identifier: MIT */
/*
 * All that NVML tells of the GPUs of this machine, read again and again, for those who watch a
 * machine for long. Each GPU is read on a thread of its own, in a process of its own
 * (nvml_process.h): a call into the driver of a GPU that hangs can take seconds, or never return. A
 * reader here never waits for one. It gets the last values and how old they are.
 *
 *	struct gpu_states *states = gpu_states_new(1000000000ull);
 *	size_t n = gpu_states_read(states, into, GPUS_MAX, now_ns);
 *	for (size_t i = 0; i < n; i++)
 *		if (into[i].value[GPU_VALUE_POWER_MW] != GPU_UNKNOWN) ...
 *	gpu_states_free(states);
 *
 * A struct gpu_state is about 8 KiB: an array of them does not belong on a stack.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpus/gpu_metrics.h"
#include "gpus/gpus.h"

#define GPU_STATE_PROCESSES_MAX 256 /* of one GPU; processes_left_out counts the rest */
#define GPU_STATE_MIG_MAX       8   /* NVML knows no more of one GPU */
#define GPU_STATE_XIDS_MAX      16  /* codes told apart; the rest are counted as one */

/*
 * What a GPU tells, each as one number; GPU_UNKNOWN where this GPU or driver does not. "Total": it
 * grows from the loading of the driver or the reset of the GPU on.
 */
enum gpu_value {
	GPU_VALUE_BUSY_PERCENT,        /* of NVML's last period, a kernel ran for this share */
	GPU_VALUE_MEMORY_BUSY_PERCENT, /* and its memory was read or written for this one */
	GPU_VALUE_MEMORY_USED_BYTES,   /* as nvidia-smi shows it */
	GPU_VALUE_MEMORY_FREE_BYTES,
	GPU_VALUE_MEMORY_TOTAL_BYTES,
	GPU_VALUE_POWER_MW,
	GPU_VALUE_POWER_LIMIT_MW,
	GPU_VALUE_ENERGY_MJ, /* total, in thousandths of a joule */
	GPU_VALUE_SM_CLOCK_HZ,
	GPU_VALUE_MEMORY_CLOCK_HZ,
	GPU_VALUE_TEMPERATURE_C,
	GPU_VALUE_MEMORY_TEMPERATURE_C,
	GPU_VALUE_THROTTLE_REASONS,  /* bits: gpu_throttle_name() */
	GPU_VALUE_PERFORMANCE_STATE, /* 0 is the fastest, 15 the slowest */
	GPU_VALUE_PCIE_TX_BYTES,     /* total, from the GPU */
	GPU_VALUE_PCIE_RX_BYTES,     /* total, to the GPU */
	GPU_VALUE_PCIE_REPLAYS,      /* total */
	GPU_VALUE_PCIE_GENERATION,   /* as it is now: lower while the GPU is idle */
	GPU_VALUE_PCIE_WIDTH,
	GPU_VALUE_ECC_CORRECTED,   /* since the driver was loaded */
	GPU_VALUE_ECC_UNCORRECTED, /* the same */
	GPU_VALUE_ECC_CORRECTED_EVER,
	GPU_VALUE_ECC_UNCORRECTED_EVER,
	GPU_VALUE_RETIRED_PAGES_CORRECTED, /* of GPUs before Ampere, for many corrected errors */
	GPU_VALUE_RETIRED_PAGES_UNCORRECTED,
	GPU_VALUE_RETIRED_PAGES_PENDING,   /* 1: a page waits for a reset to be retired */
	GPU_VALUE_REMAPPED_ROWS_CORRECTED, /* of Ampere and newer */
	GPU_VALUE_REMAPPED_ROWS_UNCORRECTED,
	GPU_VALUE_REMAPPED_ROWS_PENDING, /* 1: a row waits for a reset */
	GPU_VALUE_REMAPPED_ROWS_FAILED,  /* 1: there was no row left to take */
	GPU_VALUE_NVLINK_TX_BYTES,       /* total, of all links, without protocol */
	GPU_VALUE_NVLINK_RX_BYTES,
	GPU_VALUE_NVLINK_FLIT_ERRORS, /* these four: total, of all links */
	GPU_VALUE_NVLINK_DATA_ERRORS,
	GPU_VALUE_NVLINK_REPLAYS,
	GPU_VALUE_NVLINK_RECOVERIES,
	GPU_VALUES
};

/*
 * The name of the lowest set bit of *reasons, which is cleared there: "sw_power_cap". NULL when
 * none is set. Bits without a name are "other".
 */
const char *gpu_throttle_name(uint64_t *reasons);

#define GPU_THROTTLE_ALL UINT64_MAX /* each reason that has a name, and "other" */

/* How a GPU answers. */
enum gpu_answer {
	GPU_ANSWER_NONE_YET, /* it has not been read to the end once */
	GPU_ANSWER_GOOD,
	GPU_ANSWER_LATE,   /* a call has been under way for longer than GPU_LATE_NS: it may hang */
	GPU_ANSWER_LOST,   /* the driver says that it fell off the bus, or needs a reset */
	GPU_ANSWER_FAILED, /* the driver refuses; `why` says with what */
};

#define GPU_LATE_NS 2000000000ull

struct gpu_xids {
	uint64_t total; /* since gpu_states_new() */
	uint64_t last_ns;
	uint32_t last; /* code; 0: none came */
	uint32_t n_codes;
	struct {
		uint32_t code; /* 0: all that had no room of their own */
		uint64_t count;
	} codes[GPU_STATE_XIDS_MAX];
};

/* `codes` alone: a code that has no room any more goes to the last place, for all others. */
void gpu_xids_add_code(struct gpu_xids *xids, uint32_t code, uint64_t count);

struct gpu_state_process {
	uint32_t pid;         /* as NVML tells it: of cuscope's own PID namespace */
	int16_t mig;          /* index into `mig`; -1: of the whole GPU */
	int16_t busy_percent; /* its kernels ran for this share of the time since the reading
	                       * before; GPU_UNKNOWN: not told, as of MIG */
	int64_t bytes;        /* device memory, contexts and code included; GPU_UNKNOWN: not told */
};

struct gpu_mig {
	uint32_t index; /* as CUDA_VISIBLE_DEVICES counts them on this GPU */
	uint32_t gpu_instance, compute_instance; /* UINT32_MAX: not known */
	char uuid[96];
	char name[96];
	int64_t memory_used_bytes, memory_total_bytes;
};

struct gpu_state {
	uint32_t index; /* as nvidia-smi counts them */
	char model[96]; /* "NVIDIA H200" */
	char uuid[96];  /* empty: not known; these two the same */
	char bus[32];   /* "00000000:18:00.0" */

	enum gpu_answer answer;
	char why[128];            /* of GPU_ANSWER_LOST and GPU_ANSWER_FAILED */
	uint64_t read_ns;         /* CLOCK_MONOTONIC, when the values were read; 0: never */
	uint64_t age_ns;          /* of them, at the gpu_states_read() that this comes from */
	uint64_t reads, failures; /* how often it was read to the end, and not */

	int64_t value[GPU_VALUES];
	/* Means since the read before; `source` says from what. */
	struct gpu_metrics_sample metrics;
	struct gpu_xids xids;
	bool xids_told; /* the GPU tells of Xids at all */

	bool mig_mode;
	uint32_t n_mig;
	struct gpu_mig mig[GPU_STATE_MIG_MAX];

	bool processes_told;
	uint32_t n_processes, processes_left_out;
	struct gpu_state_process processes[GPU_STATE_PROCESSES_MAX];
};

/* All of it unknown. */
void gpu_state_unknown(struct gpu_state *state, uint32_t index);

/* The processes that call NVML, one after the other. */
struct gpu_process_figures {
	uint64_t starts;
	uint64_t ended, silent, refused; /* by itself; for silence; for what it said */
	uint64_t cpu_ns;
	uint64_t resident_bytes; /* of the one that runs */
};

struct gpu_states;

/* Starts to read, every `interval_ns`, 100 ms at least. NULL: no thread could be started. */
struct gpu_states *gpu_states_new(uint64_t interval_ns);

/*
 * Copies what is known now, in the order of the GPUs' numbers, and waits for nothing. 0 while
 * NVML is being loaded, and where there is none.
 */
size_t gpu_states_read(struct gpu_states *states, struct gpu_state *into, size_t room,
                       uint64_t now_ns);

/* For tests: why nothing, or not all, is known: a sentence in `text`, empty where all is. */
void gpu_states_why(struct gpu_states *states, char *text, size_t size);

/* The driver's version, "580.159.04"; empty while it is not known. */
void gpu_states_driver(struct gpu_states *states, char *text, size_t size);

void gpu_states_figures(struct gpu_states *states, struct gpu_process_figures *figures);

/* Does not wait for a library that hangs. */
void gpu_states_free(struct gpu_states *states);
