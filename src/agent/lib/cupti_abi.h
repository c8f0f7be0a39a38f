/* SPDX-License-Identifier: MIT */
/*
 * As much of CUPTI's binary interface as the agent needs, CUDA 11.0 to 13.x, so that nothing of
 * NVIDIA's is needed to build: numbers, layouts, function types. Names are our own, so that a test
 * can include the real headers beside this one and compare (tests/agent/abi.c).
 *
 * Activity records only ever grew at their end. cupti_activity_deprecated.h of CUDA 13.0 keeps all
 * former versions, and says of most in which CUDA a newer one replaced them. What each CUDA writes:
 *
 *   kernels      CUpti_ActivityKernel5 11.0 | 6 11.2 | 7 11.6 | 8 11.8 | 9 12.x | 10 13.0
 *   copies       CUpti_ActivityMemcpy3 11.0 | 4 11.1 | 5 11.6 | 6 12.8
 *   peer copies  CUpti_ActivityMemcpyPtoP2 11.0 | 3 11.1 | 4 11.6
 *   sets         CUpti_ActivityMemset2 11.0 | 3 11.1 | 4 11.6
 *   waits        CUpti_ActivitySynchronization | 2 12.8
 *   overhead     CUpti_ActivityOverhead | 2, 3 12.2
 *   graphs       CUpti_ActivityGraphTrace | 2 12.x
 *
 * So every kernel, copy and set tells the graph's node since 11.0. The graph itself came with 11.1
 * (Memcpy4, MemcpyPtoP3, Memset3); records of 11.0 end before it, or have padding there, so that
 * cuptiGetVersion is looked at first: CUPTI_VERSION_GRAPH_ID. Whatever is further back in newer
 * records, nobody reads here.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* ---- results, versions --------------------------------------------------------------------- */

enum cupti_result {
	CUPTI_OK = 0,
	CUPTI_INVALID_PARAMETER = 1,
	CUPTI_INVALID_OPERATION = 7,
	CUPTI_OUT_OF_MEMORY = 8,
	CUPTI_API_NOT_IMPLEMENTED = 11,
	CUPTI_MAX_LIMIT_REACHED = 12, /* cuptiActivityGetNextRecord: no more */
	CUPTI_NOT_READY = 13,
	CUPTI_NOT_COMPATIBLE = 14,
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_INVALID_KIND = 21,
	CUPTI_NOT_SUPPORTED = 27,
	CUPTI_INSUFFICIENT_PRIVILEGES = 35,
	CUPTI_OLD_PROFILER_INITIALIZED = 36,
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
	CUPTI_UNKNOWN = 999,
};

/* cuptiGetVersion counts 13 (11.0), 14 (11.1), .. 28 (12.9 update 1), then 130000 (13.0). */
#define CUPTI_VERSION_11_0     13
#define CUPTI_VERSION_GRAPH_ID 14 /* 11.1: records tell the graph, not only its node */
#define CUPTI_VERSION_11_6     17
#define CUPTI_VERSION_12_0     19
#define CUPTI_VERSION_OVERHEAD 20 /* 12.2: overhead has a correlation */
#define CUPTI_VERSION_NO_BUFFER                                                                    \
	27 /* 12.9: without a buffer it drops records; before it crashed                           \
	    */
#define CUPTI_VERSION_13_0    130000
#define CUPTI_VERSION_SEVERAL 130300 /* 13.3: the interface that serves several tools, V2 */

/* ---- activities ---------------------------------------------------------------------------- */

enum cupti_kind {
	CUPTI_KIND_MEMCPY = 1,
	CUPTI_KIND_MEMSET = 2,
	CUPTI_KIND_SERIAL_KERNEL = 3, /* KERNEL: makes kernels run one after another */
	CUPTI_KIND_DRIVER = 4,
	CUPTI_KIND_RUNTIME = 5,
	CUPTI_KIND_KERNEL = 10, /* CONCURRENT_KERNEL */
	CUPTI_KIND_OVERHEAD = 17,
	CUPTI_KIND_MEMCPY_PEER = 22, /* MEMCPY2 */
	CUPTI_KIND_SYNCHRONIZATION = 38,
	CUPTI_KIND_GRAPH_TRACE = 51, /* 11.7 */
};

/* CUpti_ActivityMemcpyKind */
enum cupti_copy_kind {
	CUPTI_COPY_UNKNOWN,
	CUPTI_COPY_HTOD,
	CUPTI_COPY_DTOH,
	CUPTI_COPY_HTOA,
	CUPTI_COPY_ATOH,
	CUPTI_COPY_ATOA,
	CUPTI_COPY_ATOD,
	CUPTI_COPY_DTOA,
	CUPTI_COPY_DTOD,
	CUPTI_COPY_HTOH,
	CUPTI_COPY_PTOP,
};

/* CUpti_ActivityMemoryKind */
enum cupti_memory_kind {
	CUPTI_MEMORY_UNKNOWN,
	CUPTI_MEMORY_PAGEABLE,
	CUPTI_MEMORY_PINNED,
	CUPTI_MEMORY_DEVICE,
	CUPTI_MEMORY_ARRAY,
	CUPTI_MEMORY_MANAGED,
	CUPTI_MEMORY_DEVICE_STATIC,
	CUPTI_MEMORY_MANAGED_STATIC,
};

/* CUpti_ActivitySynchronizationType */
enum cupti_wait_type {
	CUPTI_WAIT_UNKNOWN,
	CUPTI_WAIT_EVENT,
	CUPTI_WAIT_STREAM_FOR_EVENT,
	CUPTI_WAIT_STREAM,
	CUPTI_WAIT_CONTEXT,
};

/* CUpti_ActivityOverheadKind */
enum cupti_overhead_kind {
	CUPTI_OVERHEAD_UNKNOWN = 0,
	CUPTI_OVERHEAD_COMPILER = 1,
	CUPTI_OVERHEAD_FLUSH = 1 << 16,
	CUPTI_OVERHEAD_INSTRUMENTATION = 2 << 16,
	CUPTI_OVERHEAD_RESOURCE = 3 << 16,
	CUPTI_OVERHEAD_MODULE_LOADING = 4 << 16,
	CUPTI_OVERHEAD_LAZY_LOADING = 5 << 16,
	CUPTI_OVERHEAD_COMMAND_BUFFER_FULL = 6 << 16,
	CUPTI_OVERHEAD_BUFFER_REQUEST = 7 << 16,
	CUPTI_OVERHEAD_UVM_INIT = 8 << 16,
};

/* CUpti_ActivityObjectKind */
enum cupti_object_kind {
	CUPTI_OBJECT_UNKNOWN,
	CUPTI_OBJECT_PROCESS,
	CUPTI_OBJECT_THREAD,
	CUPTI_OBJECT_DEVICE,
	CUPTI_OBJECT_CONTEXT,
	CUPTI_OBJECT_STREAM,
};

#define CUPTI_FLUSH_FORCED 1 /* cuptiActivityFlushAll: unfinished records as well */

/* CUpti_ActivityAttribute: each value is a size_t, but where another type stands */
enum cupti_attribute {
	CUPTI_ATTRIBUTE_DEVICE_BUFFER_SIZE = 0,
	CUPTI_ATTRIBUTE_DEVICE_BUFFER_POOL_LIMIT = 2,
	CUPTI_ATTRIBUTE_PER_THREAD = 9, /* uint8_t, CUDA 12 on */
};

/* Records are packed to 8 bytes, as all of their fields are by nature; CUPTI asks that buffers be
 * aligned to 8. */
#define CUPTI_BUFFER_ALIGN 8

/* Every record begins with it. */
struct cupti_record {
	uint32_t kind; /* enum cupti_kind */
};

/* CUpti_ActivityKernel5 (11.0) to 10 (13.0) */
struct cupti_kernel {
	uint32_t kind;
	uint8_t cache_config;
	uint8_t shared_memory_config;
	uint16_t registers;
	uint32_t global_cache_requested;
	uint32_t global_cache_executed;
	uint64_t start, end;
	uint64_t completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t static_shared_memory, dynamic_shared_memory;
	uint32_t local_memory_thread, local_memory_total;
	uint32_t correlation;
	int64_t grid_id;
	const char *name; /* mangled; CUPTI keeps it until the module is unloaded */
	void *reserved0;
	uint64_t queued, submitted;
	uint8_t launch_type;
	uint8_t carveout_requested, carveout;
	uint8_t padding;
	uint32_t shared_memory_executed;
	uint64_t graph_node; /* the end of what Kernel4 is */

	uint32_t shared_memory_limit;
	uint32_t graph; /* see CUPTI_VERSION_GRAPH_ID */
};
#define CUPTI_KERNEL5_BYTES  160
#define CUPTI_KERNEL10_BYTES 216

/* CUpti_ActivityMemcpy3 (11.0) to 6 (12.8) */
struct cupti_memcpy {
	uint32_t kind;
	uint8_t copy_kind;           /* enum cupti_copy_kind */
	uint8_t source, destination; /* enum cupti_memory_kind */
	uint8_t flags;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t device, context, stream;
	uint32_t correlation;
	uint32_t runtime_correlation;
	uint32_t padding;
	void *reserved0;
	uint64_t graph_node;
	uint32_t graph; /* see CUPTI_VERSION_GRAPH_ID: Memcpy3 ends before it */
	uint32_t channel;
};
#define CUPTI_MEMCPY3_BYTES 72
#define CUPTI_MEMCPY6_BYTES 96

/* CUpti_ActivityMemcpyPtoP2 (11.0) to 4 (11.6); the source's and the destination's own contexts */
struct cupti_memcpy_peer {
	uint32_t kind;
	uint8_t copy_kind;
	uint8_t source, destination;
	uint8_t flags;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t device, context, stream;
	uint32_t source_device, source_context;
	uint32_t destination_device, destination_context;
	uint32_t correlation;
	void *reserved0;
	uint64_t graph_node;
	uint32_t graph; /* see CUPTI_VERSION_GRAPH_ID: PtoP2 ends before it */
	uint32_t channel;
};
#define CUPTI_MEMCPY_PEER2_BYTES 80
#define CUPTI_MEMCPY_PEER4_BYTES 96

/* CUpti_ActivityMemset2 (11.0) to 4 (11.6) */
struct cupti_memset {
	uint32_t kind;
	uint32_t value;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t device, context, stream;
	uint32_t correlation;
	uint16_t flags;
	uint16_t memory_kind; /* enum cupti_memory_kind */
	uint32_t padding;
	void *reserved0;
	uint64_t graph_node;
	uint32_t graph; /* see CUPTI_VERSION_GRAPH_ID: Memset2 ends before it */
	uint32_t channel;
};
#define CUPTI_MEMSET2_BYTES 72
#define CUPTI_MEMSET4_BYTES 88

/* CUpti_ActivitySynchronization, and 2 (12.8) */
struct cupti_synchronization {
	uint32_t kind;
	uint32_t type; /* enum cupti_wait_type */
	uint64_t start, end;
	uint32_t correlation;
	uint32_t context;
	uint32_t stream; /* CUPTI_NO_STREAM: of none */
	uint32_t event;  /* CUPTI_NO_STREAM: of none */
};
#define CUPTI_SYNCHRONIZATION_BYTES  40
#define CUPTI_SYNCHRONIZATION2_BYTES 56
#define CUPTI_NO_STREAM              0xffffffffu

/* CUpti_ActivityOverhead, and 2 and 3 (12.2) */
struct cupti_overhead {
	uint32_t kind;
	uint32_t overhead_kind; /* enum cupti_overhead_kind */
	uint32_t object_kind;   /* enum cupti_object_kind */
	union {
		struct {
			uint32_t process, thread;
		};
		struct {
			uint32_t device, context, stream;
		};
	} object;
	uint64_t start, end;
	uint32_t correlation; /* see CUPTI_VERSION_OVERHEAD: the first one ends before it */
	uint32_t reserved0;
};
#define CUPTI_OVERHEAD_BYTES  40
#define CUPTI_OVERHEAD3_BYTES 56

/* CUpti_ActivityGraphTrace, and 2 */
struct cupti_graph_trace {
	uint32_t kind;
	uint32_t correlation;
	uint64_t start, end;
	uint32_t device;
	uint32_t graph;
	uint32_t context, stream;
	void *reserved;
};
#define CUPTI_GRAPH_TRACE_BYTES  48
#define CUPTI_GRAPH_TRACE2_BYTES 56

/* ---- callbacks ----------------------------------------------------------------------------- */

enum cupti_domain {
	CUPTI_DOMAIN_DRIVER = 1,
	CUPTI_DOMAIN_RUNTIME = 2,
	CUPTI_DOMAIN_RESOURCE = 3,
	CUPTI_DOMAIN_SYNCHRONIZE = 4,
	CUPTI_DOMAIN_NVTX = 5,
};

/* CUpti_CallbackIdResource */
enum cupti_resource_id {
	CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING = 2,
	CUPTI_RESOURCE_MODULE_LOADED = 6,
	CUPTI_RESOURCE_MODULE_PROFILED = 8,
	CUPTI_RESOURCE_GRAPHNODE_CREATED = 13,
	CUPTI_RESOURCE_GRAPHNODE_CLONED = 20,
};

enum cupti_site {
	CUPTI_ENTER = 0,
	CUPTI_EXIT = 1,
};

/* CUpti_CallbackData: of the driver's and the runtime's domain */
struct cupti_callback_data {
	uint32_t site;          /* enum cupti_site */
	const char *function;   /* its name */
	const void *parameters; /* the function's arguments as a struct */
	void *result;           /* CUresult or cudaError_t; at CUPTI_EXIT */
	const char *symbol;     /* of a launch: the kernel */
	void *context;          /* CUcontext */
	uint32_t context_id;
	uint64_t *data; /* kept from a call's CUPTI_ENTER to its CUPTI_EXIT */
	uint32_t correlation;
};

/* CUpti_GraphData */
struct cupti_graph_data {
	void *graph, *original_graph;
	void *node, *original_node; /* CUgraphNode; the latter of CUPTI_RESOURCE_GRAPHNODE_CLONED */
	uint32_t node_type;
	void *dependency;
	void *executable;
};

/* CUpti_ModuleResourceData */
struct cupti_module_data {
	uint32_t module;
	size_t bytes;
	const char *cubin;
};

/* CUpti_ResourceData: of the domain of resources; the last member's type depends on the id. */
struct cupti_resource_data {
	void *context;
	void *resource;
	union {
		const struct cupti_graph_data *graph;
		const struct cupti_module_data *module;
	};
};

typedef void *cupti_subscriber;
typedef void (*cupti_callback)(void *user, uint32_t domain, uint32_t id, const void *data);
typedef void (*cupti_buffer_requested)(uint8_t **buffer, size_t *bytes, size_t *max_records);
typedef void (*cupti_buffer_completed)(void *context, uint32_t stream, uint8_t *buffer,
                                       size_t bytes, size_t valid_bytes);
typedef void (*cupti_buffer_requested_v2)(uint8_t **buffer, size_t *bytes, size_t *max_records,
                                          void *info);
typedef void (*cupti_buffer_completed_v2)(uint8_t *buffer, size_t bytes, size_t valid_bytes,
                                          void *info);
typedef uint64_t (*cupti_timestamp)(void);

/*
 * CUpti_SubscriberParams. `several` came with 13.2, and counts from 13.3 and driver r610 on. All
 * tools of a process have to say the same, the first one for all. Headers of 13.3 were not at hand:
 * this and the functions whose names end in _v2 are as NVIDIA documents them (CUPTI 13.4, "CUPTI
 * multiple subscribers"), and as JAX and PyTorch declare them. No real CUPTI of 13.3 was tried.
 */
struct cupti_subscriber_params {
	size_t struct_bytes;
	const char *name;   /* "cuscope" becomes "CUPTI for cuscope" */
	char *other;        /* where who has CUPTI is written, if that is why it is refused */
	size_t other_bytes; /* CUPTI_OTHER_BYTES at least */
	uint8_t several, padding[7];
};

#define CUPTI_PARAMS_BYTES_13_0 offsetof(struct cupti_subscriber_params, several)
#define CUPTI_OTHER_BYTES       64

/* FUNCTION(name, since, arguments): all return a CUptiResult. `since` is 0 where every CUDA from
 * 11.0 has it; else it may be missing. */
#define CUPTI_FUNCTIONS(FUNCTION)                                                                  \
	FUNCTION(cuptiGetVersion, 0, (uint32_t * version))                                         \
	FUNCTION(cuptiGetTimestamp, 0, (uint64_t * ns))                                            \
	FUNCTION(cuptiSubscribe, 0,                                                                \
	         (cupti_subscriber * subscriber, cupti_callback callback, void *user))             \
	FUNCTION(cuptiUnsubscribe, 0, (cupti_subscriber subscriber))                               \
	FUNCTION(cuptiEnableCallback, 0,                                                           \
	         (uint32_t enable, cupti_subscriber subscriber, uint32_t domain, uint32_t id))     \
	FUNCTION(cuptiEnableDomain, 0,                                                             \
	         (uint32_t enable, cupti_subscriber subscriber, uint32_t domain))                  \
	FUNCTION(cuptiActivityRegisterCallbacks, 0,                                                \
	         (cupti_buffer_requested requested, cupti_buffer_completed completed))             \
	FUNCTION(cuptiActivityRegisterTimestampCallback, CUPTI_VERSION_11_6,                       \
	         (cupti_timestamp timestamp))                                                      \
	FUNCTION(cuptiActivityEnable, 0, (uint32_t kind))                                          \
	FUNCTION(cuptiActivityDisable, 0, (uint32_t kind))                                         \
	FUNCTION(cuptiActivityFlushAll, 0, (uint32_t flags))                                       \
	FUNCTION(cuptiActivityGetNextRecord, 0,                                                    \
	         (uint8_t * buffer, size_t valid_bytes, struct cupti_record * *record))            \
	FUNCTION(cuptiActivityGetNumDroppedRecords, 0,                                             \
	         (void *context, uint32_t stream, size_t *dropped))                                \
	FUNCTION(cuptiActivitySetAttribute, 0,                                                     \
	         (uint32_t attribute, size_t * value_bytes, void *value))                          \
	FUNCTION(cuptiGetGraphNodeId, CUPTI_VERSION_GRAPH_ID, (void *node, uint64_t *id))          \
	FUNCTION(cuptiFinalize, 0, (void))

/* The same, of the interface that serves several tools. */
#define CUPTI_FUNCTIONS_V2(FUNCTION)                                                               \
	FUNCTION(cuptiSubscribe_v2, CUPTI_VERSION_13_0,                                            \
	         (cupti_subscriber * subscriber, cupti_callback callback, void *user,              \
	          struct cupti_subscriber_params *params))                                         \
	FUNCTION(cuptiGetTimestamp_v2, CUPTI_VERSION_SEVERAL,                                      \
	         (cupti_subscriber subscriber, uint64_t * ns))                                     \
	FUNCTION(cuptiActivityRegisterCallbacks_v2, CUPTI_VERSION_SEVERAL,                         \
	         (cupti_subscriber subscriber, cupti_buffer_requested_v2 requested,                \
	          cupti_buffer_completed_v2 completed))                                            \
	FUNCTION(cuptiActivityEnable_v2, CUPTI_VERSION_SEVERAL,                                    \
	         (cupti_subscriber subscriber, uint32_t kind, void *config))                       \
	FUNCTION(cuptiActivityDisable_v2, CUPTI_VERSION_SEVERAL,                                   \
	         (cupti_subscriber subscriber, uint32_t kind, void *config))                       \
	FUNCTION(cuptiActivityGetNextRecord_v2, CUPTI_VERSION_SEVERAL,                             \
	         (cupti_subscriber subscriber, uint8_t * buffer, size_t valid_bytes,               \
	          struct cupti_record * *record))                                                  \
	FUNCTION(cuptiActivityGetNumDroppedRecords_v2, CUPTI_VERSION_SEVERAL,                      \
	         (cupti_subscriber subscriber, void *context, uint32_t stream, size_t *dropped))   \
	FUNCTION(cuptiActivitySetAttribute_v2, CUPTI_VERSION_SEVERAL,                              \
	         (cupti_subscriber subscriber, uint32_t attribute, size_t * value_bytes,           \
	          void *value))

/* ---- arguments of calls -------------------------------------------------------------------- */

/* cuLaunchKernel, cuLaunchKernel_ptsz; cuLaunchCooperativeKernel and its _ptsz lack `extra` */
struct cupti_launch {
	void *function;
	uint32_t grid[3], block[3];
	uint32_t shared_bytes;
	void *stream;
	void **parameters;
	void **extra;
};

/* cuLaunchKernelEx, cuLaunchKernelEx_ptsz */
struct cupti_launch_ex {
	const struct cupti_launch_config *config;
	void *function;
	void **parameters;
	void **extra;
};

/* CUlaunchConfig */
struct cupti_launch_config {
	uint32_t grid[3], block[3];
	uint32_t shared_bytes;
	void *stream;
	void *attributes;
	uint32_t n_attributes;
};

/* cuGraphLaunch, cudaGraphLaunch, and their _ptsz */
struct cupti_graph_launch {
	void *graph;
	void *stream;
};
