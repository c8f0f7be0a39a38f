/* SPDX-License-Identifier: MIT */
/*
 * CUPTI's binary interface as this library writes it, in our own words: numbers and the newest
 * layout of each record. Former versions of a record are its first bytes; RECORD_VERSIONS tells how
 * many. `make check-simcuda-signatures` compares all of it with the real headers.
 */
#ifndef SIMCUDA_CUPTI_RECORDS_H
#define SIMCUDA_CUPTI_RECORDS_H

#include <stddef.h>
#include <stdint.h>

enum result {
	RESULT_SUCCESS = 0,
	RESULT_INVALID_PARAMETER = 1,
	RESULT_INVALID_CONTEXT = 3,
	RESULT_INVALID_OPERATION = 7,
	RESULT_OUT_OF_MEMORY = 8,
	RESULT_SIZE_NOT_SUFFICIENT = 10,
	RESULT_MAX_LIMIT_REACHED = 12,
	RESULT_NOT_COMPATIBLE = 14,
	RESULT_NOT_INITIALIZED = 15,
	RESULT_INVALID_KIND = 21,
	RESULT_NOT_SUPPORTED = 27,
	RESULT_INSUFFICIENT_PRIVILEGES = 35,
	RESULT_MULTIPLE_SUBSCRIBERS = 39,
	RESULT_UNKNOWN = 999,
};

enum kind {
	KIND_MEMCPY = 1,
	KIND_MEMSET = 2,
	KIND_KERNEL = 3, /* one after another */
	KIND_DRIVER = 4,
	KIND_RUNTIME = 5,
	KIND_CONCURRENT_KERNEL = 10,
	KIND_OVERHEAD = 17,
	KIND_MEMCPY2 = 22, /* from one device to another */
	KIND_SYNCHRONIZATION = 38,
	KIND_GRAPH_TRACE = 51,
	KINDS = 56,
};

enum {
	COPY_HTOD = 1,
	COPY_DTOH,
	COPY_HTOA,
	COPY_ATOH,
	COPY_ATOA,
	COPY_ATOD,
	COPY_DTOA,
	COPY_DTOD,
	COPY_HTOH,
	COPY_PTOP
};

enum {
	DOMAIN_RESOURCE = 3,
	RESOURCE_CONTEXT_DESTROY_STARTING = 2,
	RESOURCE_MODULE_LOADED = 6,
	RESOURCE_MODULE_PROFILED = 8, /* at each launch, as on an H200 */
	RESOURCE_GRAPHNODE_CREATED = 13,
	RESOURCE_GRAPHNODE_CLONED = 20
};
enum { FLAG_ASYNC = 1, FLAG_FLUSH_FORCED = 1 };
enum { OVERHEAD_FLUSH = 1 << 16, OVERHEAD_RESOURCE = 3 << 16 };
enum { OBJECT_THREAD = 2 };
enum { LAUNCH_REGULAR, LAUNCH_COOPERATIVE };
enum { CHANNEL_COMPUTE = 1, CHANNEL_COPY = 2 };
enum { THREAD_ID_POSIX, THREAD_ID_SYSTEM };

struct record {
	uint32_t kind;
};

struct kernel_record {
	uint32_t kind;
	uint8_t cache_config;
	uint8_t shared_memory_config;
	uint16_t registers;
	uint32_t cache_requested, cache_executed;
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t shared_static, shared_dynamic;
	uint32_t local_thread, local_total;
	uint32_t correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch_type;
	uint8_t carveout_requested, carveout;
	uint8_t padding;
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t shared_limit;
	uint32_t graph;
	void *access_window;
	uint32_t channel, channel_type;
	uint32_t cluster[3], cluster_scheduling;
	uint64_t local_total_v2;
	uint32_t cluster_potential, cluster_active;
	uint8_t device_launched;
	uint8_t padding3[7];
};

struct copy_record {
	uint32_t kind;
	uint8_t copy_kind, from, to, flags;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t device, context, stream;
	uint32_t correlation, runtime_correlation;
	uint32_t padding;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t channel, channel_type;
	uint8_t device_launched;
	uint8_t padding2[3];
	uint64_t copies;
};

struct peer_record {
	uint32_t kind;
	uint8_t copy_kind, from, to, flags;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t device, context, stream;
	uint32_t from_device, from_context, to_device, to_context;
	uint32_t correlation;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t channel, channel_type;
};

struct set_record {
	uint32_t kind;
	uint32_t value;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t device, context, stream;
	uint32_t correlation;
	uint16_t flags, to;
	uint32_t padding;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t channel, channel_type;
	uint8_t device_launched;
	uint8_t padding2[3];
};

struct wait_record {
	uint32_t kind;
	uint32_t type;
	uint64_t start, end;
	uint32_t correlation;
	uint32_t context, stream, event;
	uint64_t event_record;
	uint32_t result;
	uint32_t padding;
};

struct overhead_record {
	uint32_t kind;
	uint32_t overhead_kind;
	uint32_t object_kind;
	uint32_t process, thread, unused; /* of the object */
	uint64_t start, end;
	uint32_t correlation, reserved;
	void *data;
};

struct graph_record {
	uint32_t kind;
	uint32_t correlation;
	uint64_t start, end;
	uint32_t device, graph, context, stream;
	void *reserved;
	uint32_t end_device, end_context;
};

struct api_record {
	uint32_t kind;
	uint32_t site;
	uint64_t start, end;
	uint32_t process, thread, correlation, result;
};

/* CUpti_CallbackData */
struct callback_data {
	uint32_t site; /* 0: enter, 1: exit */
	const char *function;
	const void *params;
	void *result;
	const char *symbol;
	void *context;
	uint32_t context_number;
	uint64_t *data;
	uint32_t correlation;
};

/* CUpti_GraphData, and CUpti_ResourceData, which points to it */
struct graph_data {
	void *graph, *original_graph;
	void *node, *original_node;
	uint32_t node_type;
	void *dependency;
	void *executable;
};

/* CUpti_ModuleResourceData */
struct module_data {
	uint32_t module;
	size_t bytes;
	const char *cubin;
};

struct resource_data {
	void *context;
	void *resource;
	void *descriptor;
};

/*
 * X(kind, member of union any_record, bytes in CUDA 11.0, 12.4, 13.0): what each of the three
 * libraries writes. 0: it does not know the kind.
 */
#define RECORD_VERSIONS(X)                                                                         \
	X(KIND_MEMCPY, copy, 72, 88, 96)                                                           \
	X(KIND_MEMSET, set, 72, 88, 88)                                                            \
	X(KIND_KERNEL, kernel, 160, 208, 216)                                                      \
	X(KIND_CONCURRENT_KERNEL, kernel, 160, 208, 216)                                           \
	X(KIND_OVERHEAD, overhead, 40, 48, 56)                                                     \
	X(KIND_MEMCPY2, peer, 80, 96, 96)                                                          \
	X(KIND_SYNCHRONIZATION, wait, 40, 40, 56)                                                  \
	X(KIND_GRAPH_TRACE, graph, 0, 48, 56)                                                      \
	X(KIND_DRIVER, api, 40, 40, 40)                                                            \
	X(KIND_RUNTIME, api, 40, 40, 40)

union any_record {
	uint32_t kind;
	struct kernel_record kernel;
	struct copy_record copy;
	struct peer_record peer;
	struct set_record set;
	struct wait_record wait;
	struct overhead_record overhead;
	struct graph_record graph;
	struct api_record api;
};

#endif
