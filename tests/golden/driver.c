// SPDX-License-Identifier: MIT
#include "driver.h"

#include "base/array.h"
#include "cuda/driver_words.h"
#include "cuda/api.h"
#include "scene.h"

#define CLIENT  0xc1d00001
#define DEVICE  0x5c000001
#define GROUP   0x5c000010
#define MANAGED 0x7e0000000000

/* ---- functions and their calls -------------------------------------------------------------- */

static const struct function *function_of(const char *name, const char *lib, const char *arguments)
{
	static struct function functions[48];
	static uint32_t n;
	struct api_text text = { .cls = CLASS_OTHER, .spec = arguments };
	struct api *made;

	for (uint32_t i = 0; i < n; i++) {
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	}
	assert_true(n < ARRAY_SIZE(functions));
	text.name = strdup(name);
	functions[n] = (struct function){ .id = 2000 + n,
		                          .name = text.name,
		                          .lib = lib,
		                          .layer = LAYER_KERNEL,
		                          .cls = CLASS_OTHER,
		                          .api = api_from_text(&text, &made) };
	return &functions[n++];
}

static struct call call_of(const struct function *function, double at_us, double duration_us)
{
	struct call call = { .function = function,
		             .begin_ns = US(at_us),
		             .end_ns = US(at_us + duration_us) };
	const struct api_arg *args;

	call.args.n_args = (uint8_t)api_args(function->api, &args);
	return call;
}

/* An ioctl of 5 us, made in a call of CUDA's, with its first few arguments. */
static void put_ioctl(struct scene *s, double at_us, const char *name, const char *arguments,
                      const uint64_t args[6])
{
	const char *lib = strncmp(name, "UVM", 3) ? "nvidia" : "nvidia-uvm";
	struct call call = call_of(function_of(name, lib, arguments), at_us, 5);

	call.depth = 1;
	memcpy(call.args.arg, args, 6 * sizeof(*args));
	put_call(s, call);
}

#define ARGS(...)                                                                                  \
	(const uint64_t[6])                                                                        \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

/* What a function of the driver tells; it is of no thread where that is not known. */
static void put_told(struct scene *s, double at_us, double duration_us, struct managed what,
                     const uint64_t args[6], const char *words)
{
	uint32_t tid = s->tid;
	char name[MANAGED_NAME];
	struct call call = call_of(function_of(managed_name(&what, name), managed_library(&what),
	                                       managed_arguments(&what)),
	                           at_us, duration_us);

	memcpy(call.args.arg, args, 6 * sizeof(*args));
	call.text = words;
	if (what.sum || what.kind == MANAGED_XID)
		s->tid = 0;
	put_call(s, call);
	s->tid = tid;
}

/* ---- channels ------------------------------------------------------------------------------- */

#define ALLOC "client:handle parent:handle object:*handle "

static void put_group(struct scene *s, double at_us, uint32_t group)
{
	put_ioctl(s, at_us, "RM_ALLOC KEPLER_CHANNEL_GROUP_A", ALLOC "vaspace:handle engine:uint",
	          ARGS(CLIENT, DEVICE, group, 0x5c000003, 1));
}

static void put_channel(struct scene *s, double at_us, uint32_t group, uint32_t channel,
                        uint32_t engine, uint32_t id)
{
	put_ioctl(s, at_us, "RM_ALLOC HOPPER_CHANNEL_GPFIFO_A",
	          ALLOC "entries:uint engine:uint channel_id:*uint",
	          ARGS(CLIENT, group, channel, 1024, engine, id));
	put_ioctl(s, at_us + 10, "RM_CONTROL GPFIFO_GET_WORK_SUBMIT_TOKEN (channel)",
	          "client:handle object:handle token:*hex", ARGS(CLIENT, channel, 0x30000 + id));
}

static void put_settings(struct scene *s, double at_us)
{
	put_ioctl(s, at_us, "RM_CONTROL SET_TIMESLICE (TSG)",
	          "client:handle object:handle timeslice_us:u64", ARGS(CLIENT, GROUP, 2000));
	put_ioctl(s, at_us + 10, "RM_CONTROL SET_INTERLEAVE_LEVEL (TSG)",
	          "client:handle object:handle level:uint", ARGS(CLIENT, GROUP, 2));
	put_ioctl(s, at_us + 20, "RM_CONTROL GR_SET_CTXSW_PREEMPTION_MODE",
	          "client:handle object:handle flags:hex channel:handle graphics:uint compute:uint",
	          ARGS(CLIENT, 0x5c000002, 3, GROUP, 1, 2));
	/* a group that was made before the trace began */
	put_ioctl(s, at_us + 30, "RM_CONTROL SET_TIMESLICE (TSG)",
	          "client:handle object:handle timeslice_us:u64", ARGS(CLIENT, 0x5c0000ff, 1));
}

static void put_free(struct scene *s, double at_us, uint32_t handle)
{
	put_ioctl(s, at_us, "RM_FREE", "client:handle parent:handle object:handle",
	          ARGS(CLIENT, DEVICE, handle));
}

/* ---- managed memory ------------------------------------------------------------------------- */

static const char sizes[] = "12 0 0 0 4 0 0 0 0 0 0 0";

static void put_faults(struct scene *s)
{
	const struct managed fault = { .kind = MANAGED_CPU_FAULT, .cause = 1 },
			     on_gpu = { .kind = MANAGED_GPU_FAULT, .dst = 1 };
	struct managed all = fault;

	all.sum = true;
	put_told(s, 2100, 12, fault, ARGS(MANAGED), NULL);
	put_told(s, 2120, 9.5, fault, ARGS(MANAGED + 4096), NULL);
	put_told(s, 2100, 400, all, ARGS(16, 0, MANAGED, MANAGED + 61440, 168000), sizes);
	put_told(s, 3110, 0, on_gpu, ARGS(MANAGED), NULL);
	all = on_gpu;
	all.sum = true;
	put_told(s, 3110, 90, all, ARGS(8, 0, MANAGED, MANAGED + 458752, 0), "8");
	put_told(s, 3112, 60, (struct managed){ .kind = MANAGED_FAULT_BATCH }, ARGS(0), NULL);
	put_told(s, 3400, 80, (struct managed){ .kind = MANAGED_THRASHING, .sum = true },
	         ARGS(3, 3 * 65536, MANAGED, MANAGED + 131072, 0), "0 0 0 0 3");
	put_told(s, 3500, 0, (struct managed){ .kind = MANAGED_FATAL_FAULT, .dst = 1 },
	         ARGS(0x7fff00001000), NULL);
}

static void put_migrations(struct scene *s)
{
	const struct managed by_fault = { .kind = MANAGED_MIGRATION, .src = 0, .dst = 1 };
	struct managed move = by_fault;

	put_told(s, 3120, 0, by_fault, ARGS(MANAGED, 65536), NULL);
	move.sum = true;
	put_told(s, 3120, 70, move, ARGS(8, 8 * 65536, MANAGED, MANAGED + 458752, 0), "0 0 0 0 8");
	move.cause = 3; /* prefetch */
	put_told(s, 3200, 10, move, ARGS(1, 1 << 20, MANAGED + (1 << 20), MANAGED + (1 << 20), 0),
	         "0 0 0 0 0 0 0 0 1");
	move = (struct managed){
		.kind = MANAGED_MIGRATION, .cause = 4, .src = 1, .dst = 0, .sum = true
	};
	put_told(s, 3300, 30, move, ARGS(2, 2 * 65536, MANAGED, MANAGED + 65536, 0), "0 0 0 0 2");
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void put_work(struct scene *s, const struct kernel *kernel)
{
	struct call call;

	put_call(s, call_at("cuInit", 1000, 900));
	put_call(s, alloc_at("cudaMallocManaged", 2000, MANAGED, 2 << 20));
	put_call(s, launch_at("cudaLaunchKernel", 3000, kernel));
	put_ioctl(s, 3190, "UVM_MIGRATE", "base:addr length:size destination:string",
	          ARGS(MANAGED + (1 << 20), 1 << 20));
	put_call(s, call_at("cudaMemPrefetchAsync", 3180, 30));
	call = call_at("cudaDeviceSynchronize", 3600, 500);
	fail_call(&call, 700);
	put_call(s, call);
	call = call_at("cudaFree", 4200, 3);
	fail_call(&call, 700);
	put_call(s, call);
}

static void put_driver(struct scene *s, const struct process *process, const struct kernel *kernel)
{
	put_process(s, 100, process);
	put_thread(s, 110, process->pid, "managed", 20);
	put_group(s, 1100, GROUP);
	put_ioctl(s, 1110, "RM_ALLOC FERMI_CONTEXT_SHARE_A", ALLOC "vaspace:handle",
	          ARGS(CLIENT, GROUP, GROUP + 1, 0x5c000003));
	put_channel(s, 1120, GROUP, GROUP + 2, 1, 33);
	put_channel(s, 1150, GROUP, GROUP + 3, 9, 34);
	put_settings(s, 1200);
	put_faults(s);
	put_migrations(s);
	put_work(s, kernel);
	put_told(s, 3700, 300, (struct managed){ .kind = MANAGED_WAIT },
	         ARGS(200000, 210000, 90000), NULL);
	put_told(s, 3800, 0, (struct managed){ .kind = MANAGED_INTERRUPT, .sum = true },
	         ARGS(5, 0, 0, 0, 0), "0");
	put_told(s, 3900, 0, (struct managed){ .kind = MANAGED_XID, .xid = 31 },
	         ARGS(31, process->pid),
	         "pid=4848, name=managed, Ch 00000021, intr 00000000. MMU Fault: ENGINE GRAPHICS");
	put_free(s, 4300, GROUP + 3);
	put_free(s, 4320, GROUP);
}

/* A process beside it, with the same handles, that ends with its channels; and the driver's. */
static void put_others(struct scene *s, const struct process *beside, const struct process *driver)
{
	put_process(s, 1500, beside);
	put_thread(s, 1510, beside->pid, "decode", 20);
	put_group(s, 1600, GROUP);
	put_channel(s, 1620, GROUP, GROUP + 2, 19, 40);
	put_call(s, call_at("cuInit", 1550, 200));
	put_other(s, EVENT_EXIT, 4400, NULL, 0);
	put_process(s, 4500, driver);
	put_told(s, 4500, 0, (struct managed){ .kind = MANAGED_XID, .xid = 79 }, ARGS(79, 0),
	         "GPU has fallen off the bus.");
}

void write_driver_trace(const char *folder)
{
	struct run_info run = default_run_info();
	struct scene scene = { 0 };
	char path[4096];

	put_driver(&scene, new_process(4848, "managed"), new_kernel("touch(float*)", true));
	put_others(&scene, new_process(4949, "decode"), new_process(0, "[driver]"));
	run.end_ns = US(5000);
	run.command = "./managed";
	run.stacks = (struct run_stacks){ 0 };
	snprintf(path, sizeof(path), "%s/driver.cuscope", folder);
	write_scene(&scene, &run, path);
}
