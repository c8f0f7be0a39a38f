// SPDX-License-Identifier: MIT
#include "gpus/nvml_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/worker.h"
#include "base/xalloc.h"
#include "base/clock.h"

#define BYTES_MOST   (1ll << 60)
#define SECONDS_MOST 1000000000000000000ull /* 30 years, in nanoseconds */

/* Of bytes: a bool that is neither 0 nor 1 must not be read as one. */
static bool is_bool(const bool *value)
{
	unsigned char byte;

	memcpy(&byte, value, sizeof(byte));
	return byte <= 1;
}

static bool check_text(char *text, size_t size)
{
	if (!memchr(text, '\0', size))
		return false;
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 127)
			*text = '?';
	}
	return true;
}

#define TEXT(array) check_text(array, sizeof(array))

static bool between(int64_t number, int64_t least, int64_t most)
{
	return number >= least && number <= most;
}

/* A number that no GPU can tell is not known. */
static void bound(int64_t *number, int64_t most)
{
	if (!between(*number, 0, most))
		*number = GPU_UNKNOWN;
}

static void bound_int(int *number, int most)
{
	if (!between(*number, 0, most))
		*number = GPU_UNKNOWN;
}

static bool check_beat(struct nvml_beat *beat, uint64_t now_ns)
{
	for (size_t i = 0; i < GPUS_MAX; i++) {
		if (beat->since_ns[i] > now_ns)
			return false;
	}
	return beat->n <= GPUS_MAX && beat->cpu_ns < SECONDS_MOST &&
	       beat->resident_bytes < BYTES_MOST && TEXT(beat->why) && TEXT(beat->driver);
}

/* ---- metrics ------------------------------------------------------------------------------- */

static bool check_metrics(struct gpu_metrics_sample *sample, uint32_t index, uint64_t now_ns)
{
	if (sample->gpu != index || (uint32_t)sample->source >= GPU_METRICS_SOURCES ||
	    sample->begin_ns > sample->end_ns || sample->end_ns > now_ns)
		return false;
	for (enum gpu_metric i = 0; i < GPU_METRICS; i++) {
		bool rate = gpu_metric_info(i)->is_rate;

		bound(&sample->value[i], rate ? GPU_RATE_MOST : GPU_SHARE_WHOLE);
	}
	return true;
}

static bool check_sample(struct nvml_sample *sample, uint64_t now_ns)
{
	return sample->index < GPUS_MAX && sample->source < GPU_METRICS_SOURCES &&
	       sample->late < UINT32_MAX && sample->cpu_ns < SECONDS_MOST &&
	       sample->reading_ns < SECONDS_MOST && sample->any <= 1 &&
	       sample->graphics_ns <= now_ns &&
	       (!sample->any || check_metrics(&sample->sample, sample->index, now_ns));
}

/* One after the other, each with a length; shares that cannot be are not known. */
static bool check_stretches(struct nvml_stretches *stretches, uint64_t now_ns)
{
	uint64_t end_ns = 0;

	if (stretches->index >= GPUS_MAX || stretches->n > NVML_STRETCHES ||
	    stretches->interval_ns >= SECONDS_MOST || stretches->clock_error_ns >= SECONDS_MOST ||
	    stretches->samples >= UINT32_MAX || stretches->lost >= UINT32_MAX ||
	    stretches->cpu_ns >= SECONDS_MOST)
		return false;
	for (uint32_t i = 0; i < stretches->n; i++) {
		struct gpu_stretch *of = &stretches->of[i];
		int16_t *shares[] = { &of->sm, &of->tensor, &of->dram };

		if (of->begin_ns < end_ns || of->end_ns <= of->begin_ns || of->end_ns > now_ns ||
		    !between(of->busy, 0, GPU_SHARE_WHOLE) ||
		    !between(of->copies, 0, GPU_SHARE_WHOLE))
			return false;
		end_ns = of->end_ns;
		for (size_t k = 0; k < ARRAY_SIZE(shares); k++) {
			if (!between(*shares[k], 0, GPU_SHARE_WHOLE))
				*shares[k] = GPU_METRIC_UNKNOWN;
		}
	}
	return true;
}

/* ---- what a machine has -------------------------------------------------------------------- */

static bool check_gpu(struct gpu *gpu)
{
	int *shares[] = { &gpu->busy_percent, &gpu->sm_percent, &gpu->tensor_percent,
		          &gpu->dram_percent };
	int *small[] = { &gpu->temperature_c, &gpu->compute_major, &gpu->compute_minor,
		         &gpu->multiprocessors };
	int64_t *large[] = { &gpu->power_mw,          &gpu->power_limit_mw,
		             &gpu->memory_used_bytes, &gpu->memory_total_bytes,
		             &gpu->clock_hz,          &gpu->memory_bandwidth };

	for (size_t i = 0; i < ARRAY_SIZE(shares); i++)
		bound_int(shares[i], 100);
	for (size_t i = 0; i < ARRAY_SIZE(small); i++)
		bound_int(small[i], 1000000);
	for (size_t i = 0; i < ARRAY_SIZE(large); i++)
		bound(large[i], BYTES_MOST);
	return TEXT(gpu->name) && TEXT(gpu->uuid) && TEXT(gpu->bus);
}

static bool check_gpus(struct gpus_sample *sample)
{
	if (sample->n > GPUS_MAX || sample->n_processes > GPU_PROCESSES_MAX || !TEXT(sample->why))
		return false;
	for (size_t i = 0; i < sample->n; i++) {
		if (!check_gpu(&sample->gpus[i]))
			return false;
	}
	for (size_t i = 0; i < sample->n_processes; i++) {
		if (sample->processes[i].bytes > (uint64_t)BYTES_MOST)
			return false;
	}
	return true;
}

/* ---- all that a GPU tells ------------------------------------------------------------------ */

static void bound_values(struct gpu_state *state)
{
	for (enum gpu_value i = 0; i < GPU_VALUES; i++)
		bound(&state->value[i], INT64_MAX);
	bound(&state->value[GPU_VALUE_BUSY_PERCENT], 100);
	bound(&state->value[GPU_VALUE_MEMORY_BUSY_PERCENT], 100);
}

/* Where there are none, what stands there is nothing. */
static bool check_last_metrics(struct gpu_state *state, uint64_t now_ns)
{
	struct gpu_state unknown;

	if ((uint32_t)state->metrics.source != GPU_METRICS_NONE)
		return check_metrics(&state->metrics, state->index, now_ns);
	gpu_state_unknown(&unknown, state->index);
	state->metrics = unknown.metrics;
	return true;
}

static bool check_xids(const struct gpu_xids *xids)
{
	uint64_t sum = 0;

	if (xids->n_codes > GPU_STATE_XIDS_MAX || xids->total >= UINT32_MAX)
		return false;
	for (uint32_t i = 0; i < xids->n_codes; i++) {
		if (xids->codes[i].count > xids->total)
			return false;
		sum += xids->codes[i].count;
	}
	return sum == xids->total;
}

static bool check_mig(struct gpu_mig *mig)
{
	bound(&mig->memory_used_bytes, BYTES_MOST);
	bound(&mig->memory_total_bytes, BYTES_MOST);
	return TEXT(mig->uuid) && TEXT(mig->name);
}

static bool check_lists(struct gpu_state *state)
{
	if (state->n_mig > GPU_STATE_MIG_MAX || state->n_processes > GPU_STATE_PROCESSES_MAX)
		return false;
	for (uint32_t i = 0; i < state->n_mig; i++) {
		if (!check_mig(&state->mig[i]))
			return false;
	}
	for (uint32_t i = 0; i < state->n_processes; i++) {
		struct gpu_state_process *process = &state->processes[i];

		bound(&process->bytes, BYTES_MOST);
		if (!between(process->busy_percent, 0, 100))
			process->busy_percent = GPU_UNKNOWN;
		if (!between(process->mig, -1, (int64_t)state->n_mig - 1))
			return false;
	}
	return true;
}

static bool check_state(struct gpu_state *state, uint64_t now_ns)
{
	if (state->index >= GPUS_MAX || (uint32_t)state->answer > GPU_ANSWER_FAILED ||
	    state->read_ns > now_ns || state->xids.last_ns > now_ns || state->reads >= UINT32_MAX ||
	    state->failures >= UINT32_MAX)
		return false;
	bound_values(state);
	return is_bool(&state->xids_told) && is_bool(&state->mig_mode) &&
	       is_bool(&state->processes_told) && TEXT(state->model) && TEXT(state->uuid) &&
	       TEXT(state->bus) && TEXT(state->why) && check_xids(&state->xids) &&
	       check_lists(state) && check_last_metrics(state, now_ns);
}

bool nvml_check(struct nvml_message *message, size_t bytes, enum nvml_wanted wanted,
                uint64_t now_ns)
{
	if (bytes < sizeof(message->head) || message->head.magic != NVML_WIRE_MAGIC ||
	    bytes != nvml_message_bytes(message->head.kind))
		return false;
	switch (message->head.kind) {
	case NVML_MESSAGE_BEAT:
		return check_beat(&message->beat, now_ns);
	case NVML_MESSAGE_GPUS:
		return wanted == NVML_WANTED_GPUS && check_gpus(&message->gpus);
	case NVML_MESSAGE_STATE:
		return wanted == NVML_WANTED_STATES && check_state(&message->state, now_ns);
	case NVML_MESSAGE_SAMPLE:
		return wanted == NVML_WANTED_SAMPLES && check_sample(&message->sample, now_ns);
	case NVML_MESSAGE_STRETCHES:
		return wanted == NVML_WANTED_STRETCHES &&
		       check_stretches(&message->stretches, now_ns);
	default:
		return false;
	}
}

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif

#define END_PATIENCE_MS 500
#define GOOD_FOR_NS     600000000000ull /* after so long, ends before count no more */
#define PAUSE_MOST_S    600
#define STUCK_MOST      4 /* processes that do not end when they are killed */

_Static_assert(NVML_WIRE_SOCKET == WORKER_SOCKET, "where the program has its socket");

extern char **environ;
extern const char embedded_nvml[], embedded_nvml_end[];

struct nvml_process {
	enum nvml_wanted wanted;
	uint64_t interval_ns;
	struct nvml_listener listener;
	pthread_t thread;
	int wake; /* an eventfd: the end is wanted */
	bool end; /* the rest is the thread's, but for the figures */
	struct worker worker;
	uint64_t begun_ns, heard_ns;
	unsigned ends; /* in a row */
	struct worker stuck[STUCK_MOST];
	size_t n_stuck;
	struct nvml_message message;
	pthread_mutex_t lock;
	struct gpu_process_figures figures;
	uint64_t cpu_before_ns; /* of processes that are gone */
};

/* ---- starting it --------------------------------------------------------------------------- */

/* The program as a file that has no name and cannot be written any more. */
static int open_program(void)
{
	size_t bytes = (size_t)(embedded_nvml_end - embedded_nvml), done = 0;
	int low = memfd_create(NVML_WIRE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC), fd;

	if (low < 0 && errno == EINVAL) /* before 6.3 */
		low = memfd_create(NVML_WIRE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, WORKER_SOCKET + 1); /* none of its own */
	if (low >= 0)
		close(low);
	while (fd >= 0 && done < bytes) {
		ssize_t n = write(fd, embedded_nvml + done, bytes - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			close(fd);
			return -1;
		}
		done += (size_t)n;
	}
	if (fd >= 0)
		fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return fd;
}

/* Ours, but for what tells the loader what to load. The words are environ's. */
static char **clean_environment(void)
{
	size_t n = 0, kept = 0;
	char **clean;

	while (environ && environ[n])
		n++;
	clean = xcalloc(n + 1, sizeof(*clean));
	for (size_t i = 0; i < n && !getauxval(AT_SECURE); i++) {
		if (strncmp(environ[i], "LD_", 3) != 0 && strncmp(environ[i], "GLIBC_", 6) != 0)
			clean[kept++] = environ[i];
	}
	return clean;
}

/* 0 or a negative errno. The keys of a terminal are for cuscope, so it is deaf to signals. */
static int start_program(struct nvml_process *process, int program)
{
	const char *folders = getauxval(AT_SECURE) ? NULL : getenv("LD_LIBRARY_PATH");
	char path[32], wanted[16], interval[24], parent[16], **environment = clean_environment();
	char *argv[] = { (char *)NVML_WIRE_NAME, wanted, interval, parent, NULL, NULL };
	const struct worker_program its = { .path = path,
		                            .argv = argv,
		                            .environment = environment,
		                            .with = -1,
		                            .silent = true,
		                            .deaf = true };
	int rc;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
	snprintf(wanted, sizeof(wanted), "%d", (int)process->wanted);
	snprintf(interval, sizeof(interval), "%llu", (unsigned long long)process->interval_ns);
	snprintf(parent, sizeof(parent), "%d", (int)getpid());
	argv[4] = (char *)(folders ? folders : "");
	rc = worker_start(&process->worker, &its);
	free(environment);
	return rc;
}

/* What a process does, for sentences: "the process that asks NVML". */
static const char *does(const struct nvml_process *process)
{
	return process->wanted == NVML_WANTED_STRETCHES ? "samples GPUs" : "asks NVML";
}

static void describe_failure(const struct nvml_process *process, int error, char *why, size_t size)
{
	if (error == ENOENT)
		snprintf(why, size,
		         "no GPU figures: %s is made for glibc, whose loader is not on this "
		         "machine",
		         process->wanted == NVML_WANTED_STRETCHES ? "CUPTI" : "NVML");
	else
		snprintf(why, size, "no GPU figures: the process that %s cannot be started: %s",
		         does(process), strerror(error));
}

/* False with the sentence in `why`. */
static bool start(struct nvml_process *process, char *why, size_t size)
{
	int program = open_program(), rc;

	rc = program < 0 ? -errno : start_program(process, program);
	if (program >= 0)
		close(program);
	if (rc) {
		describe_failure(process, -rc, why, size);
		return false;
	}
	process->begun_ns = process->heard_ns = clock_now_ns();
	LOCKED(&process->lock);
	process->figures.starts++;
	return true;
}

/* ---- ending it ----------------------------------------------------------------------------- */

static void reap_stuck(struct nvml_process *process)
{
	size_t left = 0;

	for (size_t i = 0; i < process->n_stuck; i++) {
		if (!worker_ended(&process->stuck[i], 0, NULL))
			process->stuck[left++] = process->stuck[i];
	}
	process->n_stuck = left;
}

static void end_process(struct nvml_process *process, siginfo_t *info)
{
	if (!worker_kill(&process->worker, END_PATIENCE_MS, info)) /* it is stuck in the driver */
		process->stuck[process->n_stuck++] = process->worker;
	LOCKED(&process->lock);
	process->cpu_before_ns = process->figures.cpu_ns;
	process->figures.resident_bytes = 0;
}

/* ---- listening ----------------------------------------------------------------------------- */

enum hearing { HEARD, NOTHING, SILENT, ENDED, REFUSED };

static void count_beat(struct nvml_process *process, const struct nvml_beat *beat)
{
	uint64_t cpu_ns = process->cpu_before_ns + beat->cpu_ns;

	LOCKED(&process->lock);
	if (cpu_ns > process->figures.cpu_ns)
		process->figures.cpu_ns = cpu_ns;
	if (beat->resident_bytes)
		process->figures.resident_bytes = beat->resident_bytes;
}

static enum hearing hear(struct nvml_process *process)
{
	struct nvml_message *message = &process->message;
	ssize_t n =
		recv(process->worker.socket, message, sizeof(*message), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return NOTHING;
	if (n <= 0)
		return ENDED;
	if (!nvml_check(message, (size_t)n, process->wanted, clock_now_ns()))
		return REFUSED;
	if (message->head.kind == NVML_MESSAGE_BEAT)
		count_beat(process, &message->beat);
	process->heard_ns = clock_now_ns();
	process->listener.take(process->listener.data, message);
	return HEARD;
}

static bool end_wanted(struct nvml_process *process)
{
	return __atomic_load_n(&process->end, __ATOMIC_ACQUIRE);
}

/* Until it has ended, or has to. */
static enum hearing listen_on(struct nvml_process *process)
{
	while (!end_wanted(process)) {
		struct pollfd ready[3] = { { .fd = process->worker.socket, .events = POLLIN },
			                   { .fd = process->wake, .events = POLLIN },
			                   { .fd = process->worker.pidfd, .events = POLLIN } };
		enum hearing heard;

		if (clock_now_ns() - process->heard_ns > NVML_SILENCE_NS)
			return SILENT;
		if (poll(ready, 3, 1000) <= 0 || !(ready[0].revents || ready[2].revents))
			continue;
		heard = hear(process);
		if (heard == NOTHING && ready[2].revents) /* a fork of ours may have its socket */
			return ENDED;
		if (heard == ENDED || heard == REFUSED)
			return heard;
	}
	return ENDED;
}

static unsigned pause_s(unsigned ends)
{
	unsigned s = 1u << (ends < 10 ? ends - 1 : 9);

	return s < PAUSE_MOST_S ? s : PAUSE_MOST_S;
}

static void describe_end(const struct nvml_process *process, enum hearing heard,
                         const siginfo_t *info, char *why, size_t size)
{
	char how[96];

	if (heard == SILENT)
		snprintf(how, sizeof(how), "was silent for %llu s and was ended",
		         NVML_SILENCE_NS / 1000000000);
	else if (heard == REFUSED)
		snprintf(how, sizeof(how), "said what cannot be and was ended");
	else if (info->si_pid && info->si_code != CLD_EXITED)
		snprintf(how, sizeof(how), "ended by signal %d", info->si_status);
	else if (info->si_pid && info->si_status == 127)
		snprintf(how, sizeof(how), "could not be loaded (it wants glibc)");
	else
		snprintf(how, sizeof(how), "ended");
	snprintf(why, size, "no GPU figures: the process that %s %s; the next one in %u s",
	         does(process), how, pause_s(process->ends));
}

static void count_end(struct nvml_process *process, enum hearing heard)
{
	LOCKED(&process->lock);
	process->figures.ended += heard == ENDED;
	process->figures.silent += heard == SILENT;
	process->figures.refused += heard == REFUSED;
}

/* One process from its start to its end; the sentence is that of its end. */
static void run_one(struct nvml_process *process, char *why, size_t size)
{
	enum hearing heard;
	siginfo_t info;

	reap_stuck(process);
	if (process->n_stuck == STUCK_MOST) {
		process->ends++;
		snprintf(why, size,
		         "no GPU figures: %d processes that asked NVML hang in the driver",
		         STUCK_MOST);
		return;
	}
	if (!start(process, why, size)) {
		process->ends++;
		return;
	}
	heard = listen_on(process);
	end_process(process, &info);
	process->ends = clock_now_ns() - process->begun_ns > GOOD_FOR_NS ? 1 : process->ends + 1;
	describe_end(process, heard, &info, why, size);
	if (!end_wanted(process))
		count_end(process, heard);
}

static void *listen_always(void *data)
{
	struct nvml_process *process = data;
	struct pollfd wake = { .fd = process->wake, .events = POLLIN };
	char why[256];

	while (!end_wanted(process)) {
		run_one(process, why, sizeof(why));
		if (end_wanted(process))
			break;
		process->listener.gone(process->listener.data, why);
		poll(&wake, 1, (int)pause_s(process->ends) * 1000);
	}
	for (size_t i = 0; i < process->n_stuck; i++)
		close(process->stuck[i].pidfd);
	return NULL;
}

/* ---- for listeners ------------------------------------------------------------------------- */

struct nvml_process *nvml_process_new(enum nvml_wanted wanted, uint64_t interval_ns,
                                      const struct nvml_listener *listener)
{
	struct nvml_process *process = xcalloc(1, sizeof(*process));
	sigset_t all, old;
	bool started;

	process->wanted = wanted;
	process->interval_ns = interval_ns;
	process->listener = *listener;
	process->wake = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&process->lock, NULL);
	sigfillset(&all); /* signals are for the thread that reads them */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = process->wake >= 0 &&
	          pthread_create(&process->thread, NULL, listen_always, process) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (started)
		return process;
	if (process->wake >= 0)
		close(process->wake);
	free(process);
	return NULL;
}

void nvml_process_free(struct nvml_process *process)
{
	uint64_t one = 1;

	if (!process)
		return;
	__atomic_store_n(&process->end, true, __ATOMIC_RELEASE);
	if (write(process->wake, &one, sizeof(one)) < 0)
		return; /* cannot be: then it is left alone */
	pthread_join(process->thread, NULL);
	close(process->wake);
	pthread_mutex_destroy(&process->lock);
	free(process);
}

void nvml_process_figures(struct nvml_process *process, struct gpu_process_figures *figures)
{
	LOCKED(&process->lock);
	*figures = process->figures;
}
