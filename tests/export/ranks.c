// SPDX-License-Identifier: MIT
/*
 * Makes traces of a training on several machines, two where it is not said, of four ranks each:
 *
 *   ranks FOLDER [HOST [HOSTS]] [NAME=NUMBER...]
 *
 * FOLDER/node1.cuscope and so on; HOST: what the first is called. Of each second machine `ahead=`
 * is by how many milliseconds its monotonic clock is ahead besides, `jitter=` by how many
 * microseconds ends of its collectives differ, `untimed=1` leaves GPU times out, and `job=` makes
 * its communicator another one. `beside=1`: who waits for others multiplies meanwhile.
 *
 * `each=` makes another training, of a few steps (`steps=`) of so many sums, each behind a kernel
 * that takes 100 us or so, by `seed=`. One rank, which standard output names, is late in it:
 * `late=1` by its host, which sleeps 0.3 to 3 ms before each sixteenth sum, `late=2` by its GPU,
 * whose kernels take 1.2 to 2 times as long, `late=3` by its clocks, which does so in the second
 * half alone, and `late=4` now and then, 8 ms at three sums. `late=0`: none is.
 *
 * In each of its steps a rank copies a batch, multiplies four times, and sums up with the others.
 * Rank 5 sleeps 4 ms before each third sum, rank 2 multiplies 1.5 times as long, rank 6 copies from
 * pageable memory, rank 3 frees nothing of what it allocates in each step. The clock of each
 * second machine is 0.7 ms ahead. A shell without a rank starts the ranks of the first.
 */
#define MARKS (1 << 16)
#include "base/array.h"

#include "../golden/kernel.h"
#include "../golden/scene.h"

#define OF_HOST  4
#define STEPS    24
#define GEMMS    4
#define BEGIN_US 2000
#define LATER_US 300 /* the second recording began */
#define AHEAD_NS 700000
#define BATCH    (4ull << 20)
#define WEIGHTS  (1ull << 30)
#define LEAK     (16ull << 20)
#define JOB      0x5eedc0ffee123456
#define SUM_US   20  /* a sum, when all have come */
#define KERNEL   100 /* us */
#define LAST_US  120 /* a sum of few */

enum { SLOW_HOST = 5, SLOW_GPU = 2, PAGEABLE = 6, LEAKING = 3 };

/* Of each second machine. */
static struct {
	double ahead, jitter, untimed, job;
} other;

static double beside;

/* A training of many sums a step. */
static struct {
	double each, steps, seed, late;
	unsigned sums, rank; /* that is late */
	double much;
	double *begins, *there, *ends; /* of each sum: of each rank its kernel's begin, and its
	                                  GPU's arrival; of all */
} many = { .steps = 3 };

enum { LATE_NONE, LATE_HOST, LATE_GPU, LATE_CLOCKS, LATE_SELDOM };

/* What all ranks agree on, in microseconds of the first machine. */
struct step {
	double *begin; /* of each rank */
	double end;    /* of the sum */
};

static double gemm_us(unsigned rank)
{
	return rank == SLOW_GPU ? 150 : 100;
}

static double copy_us(unsigned rank)
{
	return rank == PAGEABLE ? 160 : 80;
}

static double asleep_us(unsigned rank, unsigned step)
{
	return rank == SLOW_HOST && step % 3 == 0 ? 4000 : 0;
}

/* When a rank's GPU comes to the sum. */
static double there_us(const struct step *steps, unsigned rank, unsigned step)
{
	return steps[step].begin[rank] + copy_us(rank) + GEMMS * gemm_us(rank) +
	       asleep_us(rank, step);
}

static void plan(struct step *steps, unsigned ranks)
{
	for (unsigned step = 0; step < STEPS; step++) {
		double last = 0;

		steps[step].begin = calloc(ranks, sizeof(*steps[step].begin));
		for (unsigned rank = 0; rank < ranks; rank++) {
			steps[step].begin[rank] = step ? steps[step - 1].end + 50 + 3 * (rank % 8)
			                               : BEGIN_US + 3 * (rank % 8);
			if (there_us(steps, rank, step) > last)
				last = there_us(steps, rank, step);
		}
		steps[step].end = last + LAST_US;
	}
}

/* ---- one rank ------------------------------------------------------------------------------ */

static uint64_t next_mark;

static struct activity activity_of(unsigned rank, enum activity_kind kind)
{
	next_mark++;
	return (struct activity){ .kind = kind,
		                  .correlation = next_mark,
		                  .device = rank % OF_HOST,
		                  .context = 1,
		                  .stream = 7 };
}

static bool is_second(unsigned rank)
{
	return rank / OF_HOST % 2;
}

static bool is_timed(unsigned rank)
{
	return !(is_second(rank) && other.untimed > 0);
}

static void put_copy(struct scene *s, unsigned rank, double at_us)
{
	struct activity ran = activity_of(rank, ACTIVITY_COPY);

	ran.bytes = BATCH;
	ran.direction = DIRECTION_H2D;
	ran.source = rank == PAGEABLE ? ACTIVITY_MEMORY_PAGEABLE : ACTIVITY_MEMORY_PINNED;
	ran.destination = ACTIVITY_MEMORY_DEVICE;
	s->mark = ran.correlation;
	put_call(s, copy_at("cudaMemcpyAsync", at_us - 15, DIRECTION_H2D, BATCH));
	if (is_timed(rank))
		put_activity(s, ran, at_us, copy_us(rank));
}

static void put_kernel_on(struct scene *s, unsigned rank, uint32_t stream,
                          const struct kernel *kernel, double at_us, double begin_us,
                          double duration_us)
{
	struct activity ran = activity_of(rank, ACTIVITY_KERNEL);

	ran.stream = stream;
	ran.kernel = kernel;
	ran.registers = 64;
	ran.grid[0] = 264;
	ran.grid[1] = ran.grid[2] = ran.block[1] = ran.block[2] = 1;
	ran.block[0] = 256;
	s->mark = ran.correlation;
	put_call(s, launch_at("cudaLaunchKernel", at_us, kernel));
	if (is_timed(rank))
		put_activity(s, ran, begin_us, duration_us);
}

static void put_kernel(struct scene *s, unsigned rank, const struct kernel *kernel, double at_us,
                       double begin_us, double duration_us)
{
	put_kernel_on(s, rank, 7, kernel, at_us, begin_us, duration_us);
}

static const struct stack *fetching(void)
{
	static const struct stack_frame fetch = { .id = 0,
		                                  .kind = FRAME_PYTHON,
		                                  .function = "fetch",
		                                  .file = "/home/ann/app/data.py",
		                                  .line = 9,
		                                  .first_line = 5 };
	static const struct stack_frame *const frames[] = { &fetch };
	static const struct stack stack = { .id = 0, .frames = frames, .n_frames = 1 };

	return &stack;
}

static void put_sleep(struct scene *s, double at_us, double us)
{
	struct sample asleep = { .kind = SAMPLE_OFF_CPU,
		                 .blocked = BLOCKED_INTERRUPT,
		                 .wait = WAIT_SLEEP,
		                 .weight_ns = (uint64_t)(us * 1000),
		                 .stack = fetching() };
	struct event event = { .type = EVENT_SAMPLE,
		               .time_ns = US(at_us + us),
		               .process = s->process,
		               .tid = s->tid,
		               .sample = &asleep };

	put_event(s, &event);
}

static void put_step(struct scene *s, unsigned rank, unsigned number, const struct step *steps,
                     double offset_us, const struct kernel *gemm, const struct kernel *reduce)
{
	double at_us = steps[number].begin[rank] - offset_us, sleeps_us = asleep_us(rank, number);
	double there = there_us(steps, rank, number) - offset_us;
	double end_us = steps[number].end - offset_us;

	if (is_second(rank))
		end_us += other.jitter * (number * 7 % 11) / 10;

	put_copy(s, rank, at_us);
	if (rank == LEAKING)
		put_call(s,
		         alloc_at("cudaMalloc", at_us + 2, 0x7f4000000000 + LEAK * number, LEAK));
	for (unsigned i = 0; i < GEMMS; i++)
		put_kernel(s, rank, gemm, at_us + 15 + 8 * i,
		           at_us + copy_us(rank) + gemm_us(rank) * i, gemm_us(rank));
	if (sleeps_us > 0)
		put_sleep(s, at_us + 60, sleeps_us);
	put_kernel(s, rank, reduce, at_us + 70 + sleeps_us, there, end_us - there);
	if (beside > 0)
		put_kernel_on(s, rank, 9, gemm, at_us + 80 + sleeps_us, there,
		              steps[number].end - offset_us - LAST_US - there);
	put_call(s, other_call(other_function(LAYER_HOOK, "nccl.ncclAllReduce", "libnccl.so.2",
	                                      "bytes:size comm:addr"),
	                       at_us + 68 + sleeps_us, 9, 8 << 20, 0x55d0bb000000 + rank));
}

/* ---- many sums ----------------------------------------------------------------------------- */

static uint64_t random_state;

static double by_chance(void) /* 0 to 1 */
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(random_state >> 40) / (1 << 24);
}

/* As long as a kernel takes, and seldom longer. */
static double noise_us(void)
{
	double us = KERNEL * (0.98 + 0.04 * by_chance());

	return by_chance() < 0.002 ? us + 30 * by_chance() : us;
}

static bool sleeps_at(unsigned sum)
{
	return (many.late == LATE_HOST && sum % 16 == 5) ||
	       (many.late == LATE_SELDOM && sum % (many.sums / 3) == many.sums / 6);
}

static double kernel_us(unsigned rank, unsigned sum)
{
	bool slow = rank == many.rank &&
	            (many.late == LATE_GPU || (many.late == LATE_CLOCKS && sum >= many.sums / 2));

	return noise_us() * (slow ? many.much : 1);
}

static void plan_many(unsigned ranks)
{
	double end = BEGIN_US;

	random_state = (uint64_t)many.seed + 1;
	for (int i = 0; i < 8; i++)
		by_chance();
	many.sums = (unsigned)(many.each * many.steps);
	many.rank = (unsigned)(by_chance() * ranks);
	many.much = many.late == LATE_HOST     ? 300 + 2700 * by_chance()
	            : many.late == LATE_SELDOM ? 8000
	                                       : 1.2 + 0.8 * by_chance();
	many.begins = calloc((size_t)many.sums * ranks, sizeof(double));
	many.there = calloc((size_t)many.sums * ranks, sizeof(double));
	many.ends = calloc(many.sums, sizeof(double));
	for (unsigned sum = 0; sum < many.sums; sum++) {
		double last = 0;

		for (unsigned rank = 0; rank < ranks; rank++) {
			size_t at = (size_t)sum * ranks + rank;
			bool sleeps = rank == many.rank && sleeps_at(sum);

			many.begins[at] = end + 1 + by_chance();
			many.there[at] =
				many.begins[at] + kernel_us(rank, sum) + (sleeps ? many.much : 0);
			if (many.there[at] > last)
				last = many.there[at];
		}
		many.ends[sum] = end = last + SUM_US;
	}
	printf("%d\n", many.late > 0 ? (int)many.rank : -1);
}

/* The host asks for the work while the GPU is at the sum before, but where it has slept. */
static void put_sum(struct scene *s, unsigned rank, unsigned ranks, unsigned sum, double offset_us,
                    const struct kernel *gemm, const struct kernel *reduce)
{
	size_t at = (size_t)sum * ranks + rank;
	double begin_us = many.begins[at] - offset_us, there_us = many.there[at] - offset_us;
	double end_us = many.ends[sum] - offset_us + 2 * by_chance();
	double asked_us = begin_us - SUM_US;

	if (rank == many.rank && sleeps_at(sum)) {
		put_kernel(s, rank, gemm, asked_us, begin_us, there_us - many.much - begin_us);
		put_sleep(s, there_us - many.much, many.much - 8);
		asked_us = there_us - 18;
	} else {
		put_kernel(s, rank, gemm, asked_us, begin_us, there_us - begin_us);
	}
	put_kernel(s, rank, reduce, asked_us + 10, there_us, end_us - there_us);
	put_call(s, other_call(other_function(LAYER_HOOK, "nccl.ncclAllReduce", "libnccl.so.2",
	                                      "bytes:size comm:addr"),
	                       asked_us + 8, 9, 8 << 20, 0x55d0bb000000 + rank));
}

/* ---- a process ----------------------------------------------------------------------------- */

/* In a file of its own: numbers begin anew. */
static const struct process *process_of(uint32_t id, uint32_t pid, const char *comm)
{
	struct process *process = calloc(1, sizeof(*process));

	process->id = id;
	process->pid = pid;
	snprintf(process->comm, sizeof(process->comm), "%s", comm);
	return process;
}

static void put_rank(struct scene *s, unsigned rank, unsigned ranks, const struct step *steps,
                     double offset_us, const struct kernel *gemm, const struct kernel *reduce)
{
	double begin_us = is_second(rank) ? 1000 * other.ahead : 0;
	struct call made =
		other_call(other_function(LAYER_HOOK, "nccl.ncclCommInitRank", "libnccl.so.2",
	                                  "ranks:int rank:int id:hex comm:addr"),
	                   begin_us + 900, 200, ranks, rank);

	put_process(s, begin_us + 500, process_of(1 + rank % OF_HOST, 7400 + rank, "python3"));
	put_thread(s, begin_us + 600, 7400 + rank, "python3", 20);
	made.args.arg[2] = JOB + (is_second(rank) ? (uint64_t)other.job << 32 : 0);
	made.args.arg[3] = 0x55d0bb000000 + rank;
	put_call(s, alloc_at("cudaMalloc", begin_us + 700, 0x7f2000000000, WEIGHTS));
	put_call(s, made);
	for (unsigned step = 0; step < STEPS && !many.sums; step++)
		put_step(s, rank, step, steps, offset_us, gemm, reduce);
	for (unsigned sum = 0; sum < many.sums; sum++)
		put_sum(s, rank, ranks, sum, offset_us, gemm, reduce);
}

/* ---- one machine --------------------------------------------------------------------------- */

static char *text_of(unsigned number)
{
	char text[12];

	snprintf(text, sizeof(text), "%u", number);
	return strdup(text);
}

static void write_host(const char *folder, unsigned host, unsigned hosts, const char *name,
                       const struct step *steps, const struct kernel *gemm,
                       const struct kernel *reduce)
{
	struct run_identity identities[OF_HOST];
	struct run_info run = default_run_info();
	struct scene scene = { 0 };
	double begin_us = host % 2 ? 1000 * other.ahead : 0;
	double offset_us = host % 2 ? LATER_US - begin_us : 0;
	char path[4096], boot[48];

	if (!host) {
		put_process(&scene, 100, process_of(0, 7300, "bash"));
		put_thread(&scene, 110, 7300, "bash", 20);
		put_call(&scene, call_at("cuInit", 120, 5));
	}
	for (unsigned rank = host * OF_HOST; rank < (host + 1) * OF_HOST; rank++) {
		struct run_identity *identity = &identities[rank % OF_HOST];

		*identity = (struct run_identity){ .pid = 7400 + rank,
			                           .since_ns = US(begin_us + 500),
			                           .own_word = 1u << RUN_IDENTITY_RANK };
		identity->words[RUN_IDENTITY_USER] = (char *)"ann";
		identity->words[RUN_IDENTITY_RANK] = text_of(rank);
		identity->words[RUN_IDENTITY_LOCAL_RANK] = text_of(rank % OF_HOST);
		identity->words[RUN_IDENTITY_WORLD_SIZE] = text_of(hosts * OF_HOST);
		put_rank(&scene, rank, hosts * OF_HOST, steps, offset_us, gemm, reduce);
	}
	snprintf(boot, sizeof(boot), "6a1c1f0e-0000-4000-8000-%012u", host);
	run.hostname = name;
	run.boot = boot;
	if (host % 2)
		run.begin_ns = US(begin_us);
	run.end_ns = US((many.sums ? many.ends[many.sums - 1] : steps[STEPS - 1].end) - offset_us +
	                1000);
	run.gpu_times = run.stacks.blocked = run.stacks.host_waits = true;
	run.stacks.blocked_ns = 100000;
	run.realtime_offset_ns += (int64_t)(1000 * offset_us) + host % 2 * AHEAD_NS;
	run.identities = identities;
	run.n_identities = OF_HOST;
	snprintf(path, sizeof(path), "%s/node%u.cuscope", folder, host + 1);
	write_scene(&scene, &run, path);
}

/* "name=number": taken, and no argument any more. */
static bool take_setting(const char *word)
{
	static const struct {
		const char *name;
		double *number;
	} all[] = { { "ahead", &other.ahead },     { "jitter", &other.jitter },
		    { "untimed", &other.untimed }, { "job", &other.job },
		    { "each", &many.each },        { "steps", &many.steps },
		    { "seed", &many.seed },        { "late", &many.late },
		    { "beside", &beside } };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		size_t n = strlen(all[i].name);

		if (strncmp(word, all[i].name, n) != 0 || word[n] != '=')
			continue;
		*all[i].number = atof(word + n + 1);
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	const struct kernel *gemm = new_kernel("gemm(float*, float*, float*)", true);
	const struct kernel *reduce =
		new_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", true);
	unsigned hosts;
	struct step steps[STEPS] = { 0 };

	while (argc > 2 && take_setting(argv[argc - 1]))
		argc--;
	if (argc < 2)
		return 2;
	hosts = argc > 3 ? (unsigned)atoi(argv[3]) : 2;
	if (many.each > 0)
		plan_many(hosts * OF_HOST);
	else
		plan(steps, hosts * OF_HOST);
	for (unsigned host = 0; host < hosts; host++) {
		char name[16];

		snprintf(name, sizeof(name), "node%u", host + 1);
		next_mark = 0;
		write_host(argv[1], host, hosts, argc > 2 && !host ? argv[2] : name, steps, gemm,
		           reduce);
	}
	return 0;
}
