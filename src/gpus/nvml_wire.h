/* SPDX-License-Identifier: MIT */
/*
 * What the process that calls NVML (src/gpus/nvml) sends to cuscope, each a message of a socket
 * (SOCK_SEQPACKET). Both are built from this header at once, since the one carries the other.
 * Private to src/gpus.
 *
 * Nothing in a message is believed: nvml_process.h.
 */
#pragma once

#include "gpus/gpu_state.h"
#include "gpus/gpu_metrics.h"

#define NVML_LIBRARY "libnvidia-ml.so.1"

#define NVML_WIRE_SOCKET  3 /* of the process */
#define NVML_WIRE_BEAT_NS 500000000ull
#define NVML_WIRE_MAGIC   0x4c4d564eu
#define NVML_WIRE_NAME    "cuscope-nvml"

/* What is asked for, the first argument of the process by its number. */
enum nvml_wanted {
	NVML_WANTED_GPUS,      /* struct gpus_sample of all GPUs together */
	NVML_WANTED_STATES,    /* struct gpu_state of each */
	NVML_WANTED_SAMPLES,   /* metrics of each */
	NVML_WANTED_STRETCHES, /* when each was busy, by CUPTI rather than NVML */
	NVML_WANTED_END
};

enum nvml_message_kind {
	NVML_MESSAGE_BEAT,
	NVML_MESSAGE_GPUS,
	NVML_MESSAGE_STATE,
	NVML_MESSAGE_SAMPLE,
	NVML_MESSAGE_STRETCHES,
	NVML_MESSAGE_KINDS
};

struct nvml_message_head {
	uint32_t magic, kind;
};

/* Comes every NVML_WIRE_BEAT_NS, from a thread that calls nothing of NVML. */
struct nvml_beat {
	uint32_t n;                      /* GPUs that are read; 0: none yet, or `why` */
	uint64_t since_ns[GPUS_MAX];     /* since when a GPU has been read; 0: it is not */
	uint64_t cpu_ns, resident_bytes; /* of the process */
	char why[256], driver[96];
};

/* What became of a reading of metrics. */
struct nvml_sample {
	uint32_t index;
	uint32_t source; /* enum gpu_metrics_source that this GPU has */
	uint64_t late;   /* moments that were missed before it */
	uint64_t cpu_ns, reading_ns;
	uint32_t any;         /* whether there is a sample */
	uint64_t graphics_ns; /* since when its GPU_METRIC_GRAPHICS is the mean; 0: not told of yet
	                       */
	struct gpu_metrics_sample sample;
};

#define NVML_STRETCHES 128

/* Of one GPU, in their order; what lies between two is not known. */
struct nvml_stretches {
	uint32_t index, n;
	uint64_t interval_ns;    /* between two samples, at present */
	uint64_t clock_error_ns; /* that times can be wrong by against CLOCK_MONOTONIC */
	uint64_t samples;        /* that were decoded since the message before */
	uint64_t lost;           /* times that some were lost since then */
	uint64_t cpu_ns;         /* that it took */
	struct gpu_stretch of[NVML_STRETCHES];
};

struct nvml_message {
	struct nvml_message_head head;
	union {
		struct nvml_beat beat;
		struct gpus_sample gpus;
		struct gpu_state state;
		struct nvml_sample sample;
		struct nvml_stretches stretches;
	};
};

/* How long a message of this kind is; 0: there is no such kind. */
static inline size_t nvml_message_bytes(uint32_t kind)
{
	static const size_t bytes[NVML_MESSAGE_KINDS] = {
		[NVML_MESSAGE_BEAT] = sizeof(struct nvml_beat),
		[NVML_MESSAGE_GPUS] = sizeof(struct gpus_sample),
		[NVML_MESSAGE_STATE] = sizeof(struct gpu_state),
		[NVML_MESSAGE_SAMPLE] = sizeof(struct nvml_sample),
		[NVML_MESSAGE_STRETCHES] = sizeof(struct nvml_stretches),
	};

	return kind < NVML_MESSAGE_KINDS ? offsetof(struct nvml_message, beat) + bytes[kind] : 0;
}
