// SPDX-License-Identifier: MIT
/*
 * stalls_steps WORD...: CUPTI's PC sampling as it is, without cuscope: one way to call it, while
 * kernels are launched, and how long each call takes. For tests/gpu/stalls-steps, which tries many.
 * A call that has not come back after 3 s ends it with the stacks of all threads, status 3.
 *
 *   way=own            a thread that launches nothing calls, whenever it likes
 *   way=gate           the same, while those that enter a launch (gate=launch) or any call
 *                      of the driver (gate=all) are held, and all that were in one have left
 *   way=callback       a thread that launches calls, in the callback at the end of a launch
 *   way=callgate       the same, while the others are held
 *   way=off            nobody: what launches cost by themselves
 *   lenient=1          who synchronizes is not waited for
 *   settle=MS          from callbacks on until the first window
 *   always=0           no callbacks with way=off
 *   threads=N          that launch, each on a stream of its own
 *   load=launch|small|mixed|long   four kernels and a synchronisation; kernels of 2 us without one;
 *                      copies, events, allocations between kernels; kernels of some 30 ms;
 *   load=wait          kernels that run until the host lets them, 300 ms after a window's call
 * began load=graph         a graph of four kernels; made=before, or after, CUPTI came, or =enabled;
 *                      eager=1: each kernel also by itself, once in ten graphs
 *   mode=window|start  a window is Enable to Disable, or Start to Stop
 *   kernels=0|1        records of kernels are on
 *   period=N, buffer=N powers of two of cycles, MiB; 0: CUPTI's own
 *   ms=N, rounds=N     of a window; how many
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <dirent.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/syscall.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/lib/pcs_abi.h"

#define NODES  (1u << 22)
#define ROOM   4096
#define STALLS 128

static int number(int argc, char **argv, const char *name, int otherwise)
{
	size_t length = strlen(name);

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], name, length) && argv[i][length] == '=')
			return argv[i][length + 1] >= 'a' ? argv[i][length + 1]
			                                  : atoi(argv[i] + length + 1);
	}
	return otherwise;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double begin_ms;
static int way, by_start, window_ms, rounds, period, buffer_mib, load, gate, lenient, settle_ms,
	always;
static volatile double call_from; /* one is under way since */
static void *cupti;
static CUcontext context;

/* ---- calls --------------------------------------------------------------------------------- */

static const char *volatile called;

static uint32_t call(const char *function, void *given)
{
	uint32_t (*address)(void *) = (uint32_t(*)(void *))dlsym(cupti, function);
	double from = now_ms();
	uint32_t result;

	call_from = from;
	called = function;
	result = address ? address(given) : 999;
	call_from = 0;
	printf("%8.1f ms  %s: %u, %.1f ms\n", now_ms() - begin_ms, function, result,
	       now_ms() - from);
	fflush(stdout);
	return result;
}

static struct pcs_pc pcs[2][ROOM];
static struct pcs_stall stalls[2][ROOM][STALLS];
static struct pcs_data data[2];
static char names[STALLS][PCS_REASON_NAME], *name[STALLS];
static uint32_t reason_of[STALLS];
static size_t n_reasons;

static void prepare(void)
{
	for (int i = 0; i < 2; i++) {
		data[i].size = sizeof(data[i]);
		data[i].room = ROOM;
		data[i].pcs = pcs[i];
		for (int j = 0; j < ROOM; j++) {
			pcs[i][j].size = sizeof(pcs[i][j]);
			pcs[i][j].stalls = stalls[i][j];
		}
	}
	for (int i = 0; i < STALLS; i++)
		name[i] = names[i];
}

static const char *reason_name(uint32_t index)
{
	for (size_t i = 0; i < n_reasons; i++) {
		if (reason_of[i] == index)
			return names[i];
	}
	return "?";
}

/* What is in a buffer: samples with and without those "not issued", and the most frequent reason.
 */
static void show(const char *what, const struct pcs_data *from)
{
	unsigned long issued = 0, idle = 0, most = 0, by[1024] = { 0 }, nameless = 0;
	const char *kernel = NULL;
	uint32_t which = 0;

	for (size_t i = 0; i < from->n && i < ROOM; i++) {
		for (size_t j = 0; j < from->pcs[i].n_stalls && j < STALLS; j++) {
			const struct pcs_stall *stall = &from->pcs[i].stalls[j];

			if (strstr(reason_name(stall->reason), "not_issued"))
				idle += stall->samples;
			else
				issued += stall->samples;
			nameless += from->pcs[i].name ? 0 : stall->samples;
			kernel = from->pcs[i].name ? from->pcs[i].name : kernel;
			if (stall->reason < 1024 && (by[stall->reason] += stall->samples) > most) {
				most = by[stall->reason];
				which = stall->reason;
			}
		}
	}
	printf("             %s: %zu PCs, %zu left; %llu samples, %llu dropped, %llu foreign; %lu "
	       "and "
	       "%lu not issued; most %s; buffer %s; %lu of no kernel; of %s\n",
	       what, from->n, from->left, (unsigned long long)from->samples,
	       (unsigned long long)from->dropped, (unsigned long long)from->foreign_samples, issued,
	       idle, most ? reason_name(which) : "none", from->hardware_full ? "full" : "not full",
	       nameless, kernel ? kernel : "none");
	fflush(stdout);
}

static void get(void)
{
	struct pcs_get given = { PCS_GET_BYTES, NULL, context, &data[1] };

	for (int i = 0; i < 8; i++) {
		data[1].n = data[1].left = 0;
		if (call("cuptiPCSamplingGetData", &given))
			break;
		show("given", &data[1]);
		if (!data[1].left)
			break;
	}
}

static uint32_t enable(void)
{
	struct pcs_context given = { PCS_CONTEXT_BYTES, NULL, context };
	struct pcs_count count = { PCS_COUNT_BYTES, NULL, context, &n_reasons };
	struct pcs_reasons reasons = { PCS_REASONS_BYTES, NULL, context, 0, reason_of, name };
	struct pcs_attribute attributes[8];
	struct pcs_configure configure = { PCS_CONFIGURE_BYTES, NULL, context, 0, attributes };
	uint32_t result = call("cuptiPCSamplingEnable", &given);

	if (result)
		return result;
	call("cuptiPCSamplingGetNumStallReasons", &count);
	if (n_reasons > STALLS)
		n_reasons = STALLS;
	reasons.n = n_reasons;
	call("cuptiPCSamplingGetStallReasons", &reasons);
	memset(attributes, 0, sizeof(attributes));
	attributes[0].type = PCS_REASONS;
	attributes[0].reasons.n = n_reasons;
	attributes[0].reasons.index = reason_of;
	attributes[1].type = PCS_MODE;
	attributes[1].number = PCS_MODE_CONTINUOUS;
	attributes[2].type = PCS_BUFFER;
	attributes[2].buffer = &data[0];
	attributes[3].type = PCS_FORMAT;
	attributes[3].number = PCS_FORMAT_PARSED;
	configure.n = 4;
	if (by_start) {
		attributes[configure.n].type = PCS_START_STOP;
		attributes[configure.n++].number = 1;
	}
	if (period) {
		attributes[configure.n].type = PCS_PERIOD;
		attributes[configure.n++].number = (uint32_t)period;
	}
	if (buffer_mib) {
		attributes[configure.n].type = PCS_HARDWARE_BYTES;
		attributes[configure.n++].bytes = (size_t)buffer_mib << 20;
	}
	result = call("cuptiPCSamplingSetConfigurationAttribute", &configure);
	for (size_t i = 0; i < configure.n; i++) {
		if (attributes[i].status)
			printf("             attribute %u: %u\n", attributes[i].type,
			       attributes[i].status);
	}
	return result;
}

static void disable(void)
{
	struct pcs_context given = { PCS_CONTEXT_BYTES, NULL, context };

	data[0].n = 0;
	call("cuptiPCSamplingDisable", &given);
	show("left by disabling", &data[0]);
}

/* ---- a gate -------------------------------------------------------------------------------- */

static int closed, inside;
static __thread int depth, performs;
static volatile int request; /* of callbacks: 1 begin, 2 end */
static unsigned long held;
static void *subscriber;

static void perform(int what);

struct callback_data {
	uint32_t site;
	const char *function;
};

static void pass(void)
{
	for (;;) {
		__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&closed, __ATOMIC_SEQ_CST))
			return;
		__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&held, 1, __ATOMIC_RELAXED);
		while (__atomic_load_n(&closed, __ATOMIC_SEQ_CST))
			usleep(50);
	}
}

static int is_of_gate(uint32_t id, const char *function)
{
	static signed char known[4096];

	if (id >= sizeof(known))
		return 0;
	if (!known[id])
		known[id] = !(lenient && strstr(function, "Synchronize")) &&
		                            (gate == 'a' || strstr(function, "Launch"))
		                    ? 1
		                    : -1;
	return known[id] > 0;
}

/* Whether nobody is in a call of the gate's any more. */
static int close_gate(int own)
{
	double from = now_ms();

	__atomic_store_n(&closed, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) > own && now_ms() - from < 200)
		usleep(20);
	printf("             gate: closed in %.2f ms, %d inside\n", now_ms() - from,
	       __atomic_load_n(&inside, __ATOMIC_SEQ_CST) - own);
	if (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) <= own)
		return 1;
	__atomic_store_n(&closed, 0, __ATOMIC_SEQ_CST);
	return 0;
}

static void on_call(void *user, uint32_t domain, uint32_t id, const struct callback_data *data)
{
	if (domain != 1 || performs || !is_of_gate(id, data->function))
		return;
	if (data->site == 0) {
		if (!depth++)
			pass();
		return;
	}
	if (!depth || --depth)
		return;
	if (request && strstr(data->function, "Launch") && (way == 'c' || way == 'g')) {
		int what = __atomic_exchange_n(&request, 0, __ATOMIC_SEQ_CST);

		performs = 1;
		if (what && (way == 'c' || close_gate(1))) {
			perform(what);
			__atomic_store_n(&closed, 0, __ATOMIC_SEQ_CST);
		} else if (what)
			request = what;
		performs = 0;
	}
	__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

static void callbacks(uint32_t on)
{
	uint32_t (*domain)(uint32_t, void *, uint32_t) =
		(uint32_t(*)(uint32_t, void *, uint32_t))dlsym(cupti, "cuptiEnableDomain");

	domain(on, subscriber, 1);
}

static void subscribe(void)
{
	uint32_t (*function)(void **, void *, void *) =
		(uint32_t(*)(void **, void *, void *))dlsym(cupti, "cuptiSubscribe");

	printf("subscribe: %u\n", function(&subscriber, (void *)on_call, NULL));
}

/* ---- windows ------------------------------------------------------------------------------- */

static int round_now, ends;

static void window_begin(void)
{
	struct pcs_context given = { PCS_CONTEXT_BYTES, NULL, context };

	if (!by_start || !round_now)
		enable();
	if (by_start)
		call("cuptiPCSamplingStart", &given);
}

static void window_end(void)
{
	struct pcs_context given = { PCS_CONTEXT_BYTES, NULL, context };

	if (by_start)
		call("cuptiPCSamplingStop", &given);
	get();
	if (!by_start || round_now == rounds - 1)
		disable();
	round_now++;
}

static void perform(int what)
{
	double from = now_ms();

	if (what == 1)
		window_begin();
	else
		window_end();
	printf("%8.1f ms  %s took %.2f ms in all\n", now_ms() - begin_ms,
	       what == 1 ? "begin" : "end", now_ms() - from);
	fflush(stdout);
}

static void ask(int what)
{
	if (way == 'o') {
		perform(what);
		return;
	}
	if (way == 'c' || way == 'g') {
		request = what;
		while (request && !ends)
			usleep(100);
		usleep(1000);
		while (call_from != 0.0)
			usleep(100);
	} else {
		while (!close_gate(0))
			usleep(1000);
		perform(what);
		__atomic_store_n(&closed, 0, __ATOMIC_SEQ_CST);
	}
}

static void *own_thread(void *unused)
{
	cuCtxSetCurrent(context);
	performs = way == 'G';
	usleep((useconds_t)settle_ms * 1000);
	while (round_now < rounds) {
		ask(1);
		usleep((useconds_t)window_ms * 1000);
		ask(2);
		usleep(200000);
	}
	ends = 1;
	return NULL;
}

/* ---- stacks -------------------------------------------------------------------------------- */

static void on_signal(int signal)
{
	void *frames[40];
	int n = backtrace(frames, 40);

	dprintf(1, "-- thread %ld\n", syscall(SYS_gettid));
	backtrace_symbols_fd(frames, n, 1);
}

static void *watch_thread(void *unused)
{
	for (;;) {
		double from = call_from;
		struct dirent *entry;
		DIR *dir;

		usleep(100000);
		if (from == 0.0 || from != call_from || now_ms() - from < 3000)
			continue;
		printf("%8.1f ms  DID NOT END: %s, %d inside, %lu held\n", now_ms() - begin_ms,
		       called, inside, held);
		fflush(stdout);
		dir = opendir("/proc/self/task");
		while ((entry = readdir(dir))) {
			if (entry->d_name[0] == '.')
				continue;
			syscall(SYS_tgkill, getpid(), atoi(entry->d_name), SIGUSR1);
			usleep(100000);
		}
		_exit(3);
	}
}

static volatile unsigned int *flag;

/* ---- kernels ------------------------------------------------------------------------------- */

__global__ void chase(const unsigned int *next, unsigned int *out)
{
	unsigned int at = (blockIdx.x * blockDim.x + threadIdx.x) * 977 % NODES;

	for (int i = 0; i < 200; i++)
		at = next[at];
	out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

static void requested(uint8_t **buffer, size_t *bytes, size_t *most)
{
	*bytes = 256 << 10;
	*buffer = (uint8_t *)malloc(*bytes);
	*most = 0;
}

static void completed(void *ctx, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	free(buffer);
}

static void measure_kernels(void)
{
	uint32_t (*callbacks)(void (*)(uint8_t **, size_t *, size_t *),
	                      void (*)(void *, uint32_t, uint8_t *, size_t, size_t)) =
		(uint32_t(*)(void (*)(uint8_t **, size_t *, size_t *),
	                     void (*)(void *, uint32_t, uint8_t *, size_t,
	                              size_t)))dlsym(cupti, "cuptiActivityRegisterCallbacks");
	uint32_t (*enable_kind)(uint32_t) =
		(uint32_t(*)(uint32_t))dlsym(cupti, "cuptiActivityEnable");

	printf("kernels: callbacks %u", callbacks(requested, completed));
	printf(", enabled %u\n", enable_kind(10));
}

__global__ void small(unsigned int *out)
{
	out[threadIdx.x] = threadIdx.x;
}

__global__ void until_let(volatile unsigned int *let)
{
	while (!*let)
		;
}

static void *let_thread(void *unused)
{
	for (;;) {
		double from = call_from;

		usleep(5000);
		if (from == 0.0 ? now_ms() - begin_ms > 100 && !request && !closed
		                : now_ms() - from > 300)
			*flag = 1;
	}
}

static unsigned int *next_node;
static unsigned long launches, longest_us;
static cudaGraphExec_t graph_before;
static int made, eager;

static cudaGraphExec_t make_graph(unsigned int *out)
{
	cudaGraphExec_t made = NULL;
	cudaStream_t stream;
	cudaGraph_t graph;

	cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
	cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
	for (int i = 0; i < 3; i++)
		chase<<<264, 256, 0, stream>>>(next_node, out);
	small<<<1, 32, 0, stream>>>(out);
	cudaStreamEndCapture(stream, &graph);
	printf("graph: %d\n", (int)cudaGraphInstantiate(&made, graph, 0));
	return made;
}

static void launch_round(cudaStream_t stream, unsigned int *out, unsigned int *host, int turn)
{
	if (load == 'w') {
		until_let<<<1, 1, 0, stream>>>(flag);
		cudaStreamSynchronize(stream);
		__atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED);
		*flag = 0;
		return;
	}
	if (load == 's') {
		for (int i = 0; i < 100; i++)
			small<<<1, 32, 0, stream>>>(out);
		if (turn % 10 == 0)
			cudaStreamSynchronize(stream);
		__atomic_add_fetch(&launches, 100, __ATOMIC_RELAXED);
		return;
	}
	if (load == 'r') {
		if (made == 'e' && round_now && !graph_before)
			graph_before = make_graph(out);
		if (eager || !graph_before)
			chase<<<264, 256, 0, stream>>>(next_node, out);
		if (eager || !graph_before)
			small<<<1, 32, 0, stream>>>(out);
		for (int i = 0; i < 10 && graph_before; i++)
			cudaGraphLaunch(graph_before, stream);
		cudaStreamSynchronize(stream);
		__atomic_add_fetch(&launches, 10, __ATOMIC_RELAXED);
		return;
	}
	for (int i = 0; i < 4; i++) {
		chase<<<load == 'L' ? 1056 * 40 : 264, 256, 0, stream>>>(next_node, out);
		if (load != 'm')
			continue;
		cudaMemcpyAsync(host, out, 4096, cudaMemcpyDeviceToHost, stream);
		if (turn % 8 == 0) {
			void *more = NULL;

			cudaMalloc(&more, 1 << 20);
			cudaFree(more);
		}
	}
	cudaStreamSynchronize(stream);
	__atomic_add_fetch(&launches, 4, __ATOMIC_RELAXED);
}

static void *launch_thread(void *unused)
{
	unsigned int *out, *host;
	cudaStream_t stream;
	unsigned long old;
	double from;

	cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
	cudaMalloc(&out, (size_t)1056 * 40 * 256 * sizeof(*out));
	cudaMallocHost(&host, 4096);
	for (int turn = 0; !ends; turn++) {
		from = now_ms();
		launch_round(stream, out, host, turn);
		old = (unsigned long)((now_ms() - from) * 1000);
		if (old > __atomic_load_n(&longest_us, __ATOMIC_RELAXED))
			__atomic_store_n(&longest_us, old, __ATOMIC_RELAXED);
	}
	return NULL;
}

static int word(int argc, char **argv, const char *name, int otherwise)
{
	size_t length = strlen(name);

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], name, length) || argv[i][length] != '=')
			continue;
		if (!strcmp(argv[i] + length + 1, "callgate"))
			return 'g';
		if (!strcmp(argv[i] + length + 1, "gate"))
			return 'G';
		if (!strcmp(argv[i] + length + 1, "off"))
			return '-';
		if (!strcmp(argv[i] + length + 1, "wait"))
			return 'w';
		if (!strcmp(argv[i] + length + 1, "long"))
			return 'L';
		if (!strcmp(argv[i] + length + 1, "graph"))
			return 'r';
		return argv[i][length + 1];
	}
	return otherwise;
}

int main(int argc, char **argv)
{
	unsigned int *host = (unsigned int *)malloc(NODES * sizeof(*host)), *out;
	int threads = number(argc, argv, "threads", 1);
	pthread_t thread[64], own, watch, let;
	void *warm[2];

	backtrace(warm, 2);
	signal(SIGUSR1, on_signal);
	way = word(argc, argv, "way", 'G');
	load = word(argc, argv, "load", 'l');
	gate = word(argc, argv, "gate", 'a');
	by_start = word(argc, argv, "mode", 's') == 's';
	lenient = number(argc, argv, "lenient", 0);
	settle_ms = number(argc, argv, "settle", 300);
	always = number(argc, argv, "always", 1);
	window_ms = number(argc, argv, "ms", 20);
	rounds = number(argc, argv, "rounds", 5);
	period = number(argc, argv, "period", 18);
	buffer_mib = number(argc, argv, "buffer", 64);
	cupti = dlopen(getenv("LIBCUPTI") ? getenv("LIBCUPTI") : "libcupti.so.13", RTLD_NOW);
	if (!cupti || threads > 64) {
		printf("no libcupti: %s\n", dlerror());
		return 1;
	}
	for (unsigned int i = 0; i < NODES; i++)
		host[i] = (i * 1664525u + 1013904223u) % NODES;
	cudaMalloc(&next_node, NODES * sizeof(*host));
	cudaMalloc(&out, 1056 * 256 * sizeof(*host));
	cudaMemcpy(next_node, host, NODES * sizeof(*host), cudaMemcpyHostToDevice);
	chase<<<1056, 256>>>(next_node, out);
	small<<<1, 32>>>(out);
	cudaDeviceSynchronize();
	cuCtxGetCurrent(&context);
	prepare();
	made = word(argc, argv, "made", 'b');
	eager = number(argc, argv, "eager", 0);
	if (load == 'r' && made == 'b')
		graph_before = make_graph(out);
	subscribe();
	if (number(argc, argv, "kernels", 1))
		measure_kernels();
	if (always)
		callbacks(1);
	if (load == 'r' && made == 'a')
		graph_before = make_graph(out);
	begin_ms = now_ms();
	cudaHostAlloc((void **)&flag, 4, cudaHostAllocMapped);
	pthread_create(&watch, NULL, watch_thread, NULL);
	if (load == 'w')
		pthread_create(&let, NULL, let_thread, NULL);
	for (int i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, launch_thread, NULL);
	if (way != '-')
		pthread_create(&own, NULL, own_thread, NULL);
	for (int tick = 0; tick < 200 && !ends; tick++) {
		usleep(250000);
		printf("%8.1f ms  launches %lu, the longest round %.1f ms, held %lu\n",
		       now_ms() - begin_ms, __atomic_exchange_n(&launches, 0, __ATOMIC_RELAXED),
		       (double)__atomic_exchange_n(&longest_us, 0, __ATOMIC_RELAXED) / 1e3,
		       __atomic_exchange_n(&held, 0, __ATOMIC_RELAXED));
		fflush(stdout);
		if (way == '-' && tick == 7)
			ends = 1;
	}
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	printf("%8.1f ms  exit\n", now_ms() - begin_ms);
	fflush(stdout);
	return 0;
}
