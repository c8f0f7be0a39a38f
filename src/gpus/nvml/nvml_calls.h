/* SPDX-License-Identifier: MIT */
/*
 * The functions of NVML that are asked for, and the layouts that they fill.
 *
 * Prototypes and layouts are those of NVML's public interface, which keeps them for good: what
 * changes gets a new suffix (_v2, _v3). Source: NVML API Reference
 * (docs.nvidia.com/deploy/nvml-api); compared with nvidia-smi on an H200 with driver 580.159.04.
 */
#pragma once

#include "gpus/nvml_wire.h"

enum nvml_result { /* nvmlReturn_t */
	           NVML_SUCCESS = 0,
	           NVML_NOT_SUPPORTED = 3,
	           NVML_NOT_FOUND = 6,
	           NVML_INSUFFICIENT_SIZE = 7,
	           NVML_TIMEOUT = 10,
	           NVML_GPU_IS_LOST = 15,
	           NVML_RESET_REQUIRED = 16,
};

#define NVML_SENSOR_GPU 0 /* nvmlTemperatureSensors_t */
#define NVML_CLOCK_SM   1 /* nvmlClockType_t */
#define NVML_CLOCK_MEM  2
#define NVML_EVENT_XID  8ull /* nvmlEventTypeXidCriticalError */

typedef struct nvmlDevice_st *gpu_handle;       /* nvmlDevice_t, opaque */
typedef struct nvmlEventSet_st *nvml_event_set; /* these two the same */
typedef struct nvmlGpmSample_st *gpm_handle;

struct utilization { /* nvmlUtilization_t: percent */
	unsigned gpu, memory;
};

struct nvml_memory { /* nvmlMemory_t: bytes; `used` has what the driver keeps for itself in it */
	unsigned long long total, free, used;
};

struct memory_v2 { /* nvmlMemory_v2_t: `used` is what nvidia-smi shows */
	unsigned version;
	unsigned long long total, reserved, free, used;
};

struct pci { /* nvmlPciInfo_t */
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char bus_id[32];
};

#define MEMORY_V2 (sizeof(struct memory_v2) | 2u << 24)

/* nvmlProcessInfo_v2_t, which both _v2 and _v3 of the call fill */
struct process_info {
	unsigned pid;
	unsigned long long used_bytes; /* ~0: not available */
	unsigned gpu_instance, compute_instance;
};

/* nvmlProcessUtilizationSample_t: percent, of the driver's sampling period before `time_us` */
struct process_utilization {
	unsigned pid;
	unsigned long long time_us; /* of the wall clock */
	unsigned sm, memory, encoder, decoder;
};

struct nvml_field { /* nvmlFieldValue_t */
	unsigned id, scope;
	long long time_us, latency_us;
	int type; /* enum nvml_type */
	int result;
	union {
		double real;
		unsigned u32;
		unsigned long long u64;
	} value;
};

enum nvml_type { /* nvmlValueType_t; a long is of 64 bits here */
	         NVML_TYPE_DOUBLE,
	         NVML_TYPE_U32,
	         NVML_TYPE_ULONG,
	         NVML_TYPE_U64,
	         NVML_TYPE_S64,
	         NVML_TYPE_S32,
	         NVML_TYPE_U16,
};

struct nvml_event { /* nvmlEventData_t */
	gpu_handle gpu;
	unsigned long long type, data;
	unsigned gpu_instance, compute_instance;
};

struct gpm_support { /* nvmlGpmSupport_t, version 1 */
	unsigned version, supported;
};

struct gpm_metric { /* nvmlGpmMetric_t */
	unsigned id;
	int result;
	double value;
	const char *short_name, *long_name, *unit;
};

/* NVML_GPM_METRIC_MAX was 98, then 210, then 333, all under version 1: room for more. */
#define GPM_METRICS_ROOM 512

struct gpm_metrics { /* nvmlGpmMetricsGet_t */
	unsigned version, n;
	gpm_handle first, second;
	struct gpm_metric metrics[GPM_METRICS_ROOM];
};

_Static_assert(sizeof(struct process_info) == 24, "nvmlProcessInfo_v2_t");
_Static_assert(sizeof(struct process_utilization) == 32, "nvmlProcessUtilizationSample_t");
_Static_assert(sizeof(struct memory_v2) == 40, "nvmlMemory_v2_t");
_Static_assert(sizeof(struct pci) == 68, "nvmlPciInfo_t");
_Static_assert(sizeof(struct nvml_field) == 40, "nvmlFieldValue_t");
_Static_assert(sizeof(struct nvml_event) == 32, "nvmlEventData_t");
_Static_assert(sizeof(struct gpm_metric) == 40, "nvmlGpmMetric_t");

/* The first drivers of 535 wrote entries of 32 bytes: room for that many of those. */
#define NVML_PROCESSES_ROOM (GPU_PROCESSES_MAX * 4 / 3 + 1)

/* A function that this library lacks is NULL. */
struct nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned *count);
	int (*handle)(unsigned index, gpu_handle *gpu);
	int (*driver)(char *version, unsigned size);
	int (*name)(gpu_handle handle, char *name, unsigned size);
	int (*utilization)(gpu_handle handle, struct utilization *utilization);
	int (*memory)(gpu_handle handle, struct nvml_memory *memory);
	int (*memory_v2)(gpu_handle handle, struct memory_v2 *memory); /* since driver 510 */
	int (*power)(gpu_handle handle, unsigned *milliwatts);
	int (*power_limit)(gpu_handle handle, unsigned *milliwatts);
	int (*energy)(gpu_handle handle, unsigned long long *millijoules);
	int (*temperature)(gpu_handle handle, int sensor, unsigned *celsius);
	int (*clock)(gpu_handle handle, int clock, unsigned *mhz);
	int (*throttle)(gpu_handle handle, unsigned long long *reasons);
	int (*performance)(gpu_handle handle, int *state);
	int (*pcie_generation)(gpu_handle handle, unsigned *generation);
	int (*pcie_width)(gpu_handle handle, unsigned *lanes);
	int (*ecc)(gpu_handle handle, int kind, int counter, unsigned long long *count);
	int (*fields)(gpu_handle handle, int count, struct nvml_field *fields);
	int (*processes)(gpu_handle handle, unsigned *count, struct process_info *infos);
	int (*process_utilization)(gpu_handle handle, struct process_utilization *samples,
	                           unsigned *count, unsigned long long since_us);
	int (*uuid)(gpu_handle handle, char *uuid, unsigned size);
	int (*pci)(gpu_handle handle, struct pci *pci);
	int (*compute)(gpu_handle handle, int *major, int *minor);
	int (*max_clock)(gpu_handle handle, int clock, unsigned *mhz);
	int (*bus_width)(gpu_handle handle, unsigned *bits); /* these two: since driver 495 */
	int (*cores)(gpu_handle handle, unsigned *cores);
	int (*mig_mode)(gpu_handle handle, unsigned *now, unsigned *pending);
	int (*mig_handle)(gpu_handle handle, unsigned index, gpu_handle *mig);
	int (*gpu_instance)(gpu_handle mig, unsigned *id);
	int (*compute_instance)(gpu_handle mig, unsigned *id);
	int (*event_set)(nvml_event_set *set);
	int (*event_free)(nvml_event_set set);
	int (*event_register)(gpu_handle handle, unsigned long long types, nvml_event_set set);
	int (*event_wait)(nvml_event_set set, struct nvml_event *event, unsigned timeout_ms);
	int (*gpm_support)(gpu_handle handle, struct gpm_support *support);
	int (*gpm_alloc)(gpm_handle *sample);
	int (*gpm_free)(gpm_handle sample);
	int (*gpm_sample)(gpu_handle handle, gpm_handle sample);
	int (*gpm_metrics)(struct gpm_metrics *metrics);
	const char *(*error)(int result);
	struct process_info infos[NVML_PROCESSES_ROOM];
	unsigned samples; /* that nvml_sample() has taken */
	struct gpm *gpm[GPUS_MAX];
};

/* What NVML says of a result: "GPU is lost". */
const char *nvml_error(const struct nvml *nvml, int result);
