// SPDX-License-Identifier: MIT
/* What recordings say that nobody recorded: the account adds up, and takes neither time nor memory
 * beyond its bounds. */
#include "support.h"

#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "account/answer.h"
#include "account/gpu_time.h"
#include "account/parts.h"
#include "account/walk.h"

#define MANY 300000u

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- parts --------------------------------------------------------------------------------- */

/* All of one thread: their waits differ. */
static const struct process process_of_parts = { .pid = 42 };
static struct fact_thread thread_of_parts = { .process = &process_of_parts, .tid = 42 };
static const struct run_info run_of_parts;
static const struct facts facts_of_parts = { .run = &run_of_parts,
	                                     .threads = &thread_of_parts,
	                                     .n_threads = 1 };

static void assert_bounded(struct parts *parts, double ns)
{
	struct account account = { 0 };
	double sum = 0;

	parts_finish(parts, &account);
	assert_true(account.n_parts < MANY - 1000);
	for (size_t i = 0; i < account.n_parts; i++)
		sum += account.parts[i].ns;
	assert_true(sum > ns - 1 && sum < ns + 1);
	assert_true(account.ns > ns - 1 && account.ns < ns + 1);
	free(account.parts);
	parts_free(parts);
}

static void test_more_places_than_are_kept_keep_their_time(void **state)
{
	struct parts *parts = parts_new(&facts_of_parts);

	for (uint32_t i = 0; i < MANY; i++)
		parts_add(parts, &(struct part_key){ ACCOUNT_SLEEP, i, 0, i, 0 }, 10, 1);
	assert_bounded(parts, 10.0 * MANY);
}

/* Some without samples, some with one. */
static void test_more_sampled_places_than_are_kept_keep_their_time(void **state)
{
	struct parts *parts = parts_new(&facts_of_parts);

	for (uint32_t i = 0; i < MANY; i++) {
		struct part_key key = { ACCOUNT_COMPUTING, i, 0, i, 0 };

		parts_add_cpu(parts, &key, 10, 1);
		if (i % 3 == 0)
			parts_add_sample(parts, &key, i % 2 ? ACCOUNT_COMPUTING : ACCOUNT_FAULT, 1);
	}
	assert_bounded(parts, 10.0 * MANY);
}

/* Each is reached through a wait of its own, of which no cause has room for all. */
static void test_more_waits_with_samples_than_are_kept_keep_their_time(void **state)
{
	struct parts *parts = parts_new(&facts_of_parts);

	for (uint32_t i = 0; i < MANY; i++) {
		struct part_key key = { ACCOUNT_COMPUTING, 0, 0, i, 0 };

		parts_add_cpu(parts, &key, 10, 1);
		parts_add_sample(parts, &key, ACCOUNT_COMPUTING, 1);
	}
	assert_bounded(parts, 10.0 * MANY);
}

static void test_more_waits_than_are_kept_are_left_out_of_the_way(void **state)
{
	struct parts *parts = parts_new(&facts_of_parts);
	struct account_via *vias;
	uint32_t via = 0;
	size_t n;

	for (uint32_t i = 0; i < MANY; i++)
		via = parts_via(parts, &(struct account_via){ via, ACCOUNT_LOCK, i, i });
	vias = parts_take_vias(parts, &n);
	assert_true(n < MANY - 1000);
	assert_true(via < n);
	free(vias);
	parts_free(parts);
}

/* ---- recordings ---------------------------------------------------------------------------- */

struct recording {
	struct facts facts;
	struct run_info info;
	const struct process *processes[4];
	uint64_t random;
};

static void begin_recording(struct recording *recording, uint64_t seed)
{
	static const struct process *processes[4];

	for (size_t i = 0; i < 4 && !processes[i]; i++)
		processes[i] = new_process(100 + (uint32_t)i, "train");
	*recording = (struct recording){ .info = default_run_info(), .random = seed };
	memcpy(recording->processes, processes, sizeof(processes));
	facts_init(&recording->facts);
}

static uint64_t chance(struct recording *recording, uint64_t below)
{
	recording->random = recording->random * 6364136223846793005ull + 1442695040888963407ull;
	return (recording->random >> 20) % below;
}

static void add_launch(struct recording *recording, const struct process *process, uint32_t tid,
                       uint64_t begin_ns, uint64_t end_ns, uint64_t correlation,
                       const char *function)
{
	struct call call = { .function = the_function(function),
		             .begin_ns = begin_ns,
		             .end_ns = end_ns,
		             .correlation = correlation };
	struct event event;

	call.op = api_op(call.function->api);
	event = call_event(process, tid, &call);
	facts_event(&recording->facts, &event);
}

static void add_work(struct recording *recording, const struct process *process, uint32_t device,
                     uint64_t begin_ns, uint64_t end_ns, uint64_t correlation, bool kernel)
{
	const struct activity activity = { .kind = kernel ? ACTIVITY_KERNEL : ACTIVITY_COPY,
		                           .begin_ns = begin_ns,
		                           .end_ns = end_ns,
		                           .correlation = correlation,
		                           .device = device };
	struct event event = activity_event(process, &activity);

	facts_event(&recording->facts, &event);
}

static void add_sample(struct recording *recording, const struct process *process, uint32_t tid,
                       uint64_t time_ns, const struct sample *sample)
{
	facts_event(&recording->facts, &(struct event){ .type = EVENT_SAMPLE,
	                                                .time_ns = time_ns,
	                                                .process = process,
	                                                .tid = tid,
	                                                .sample = sample });
}

/* All that has causes is the time that was measured. */
static void assert_adds_up(const struct account *account)
{
	double time = (double)(account->end_ns - account->begin_ns - account->not_measured_ns);
	double sum = 0, most = 10 + time / 1e9;

	for (size_t i = 0; i < account->n_parts; i++) {
		assert_true(account->parts[i].ns >= -most);
		assert_true((unsigned)account->parts[i].cause < ACCOUNT_CAUSES);
		sum += account->parts[i].ns;
	}
	if (sum < time - most || sum > time + most)
		fail_msg("%.0f ns of %.0f have a cause", sum, time);
}

/* Returns how many parts all accounts have. */
static size_t end_recording(struct recording *recording)
{
	struct accounts accounts;
	struct answer answer;
	size_t n_parts = 0;

	facts_end(&recording->facts, &recording->info);
	accounts_make(&accounts, &recording->facts);
	for (size_t i = 0; i < accounts.n; i++) {
		assert_adds_up(&accounts.of[i]);
		n_parts += accounts.of[i].n_parts;
	}
	answer_make(&answer, &recording->facts, &accounts);
	for (size_t i = 0; i < accounts.n; i++) {
		struct answer_line lines[12];
		size_t n = answer_lines(&answer, &accounts.of[i], lines, 12);

		assert_true(n <= 12);
	}
	answer_clear(&answer);
	accounts_clear(&accounts);
	facts_clear(&recording->facts);
	return n_parts;
}

static uint64_t some_time(struct recording *recording)
{
	switch (chance(recording, 40)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX - chance(recording, 1000);
	case 2: /* at one moment, many */
		return US(500);
	default:
		return RUN_BEGIN_NS + chance(recording, 2000000);
	}
}

static void add_some_sample(struct recording *recording, const struct process *process,
                            uint32_t tid)
{
	const struct stack_frame frame = { .id = (uint32_t)chance(recording, 5),
		                           .kind = FRAME_PYTHON,
		                           .function = "f",
		                           .file = "/home/ann/a.py",
		                           .line = (uint32_t)chance(recording, 5) };
	static struct stack_frame frames[5];
	static const struct stack_frame *pointers[5];
	static struct stack stacks[5];
	const struct sample sample = {
		.kind = chance(recording, 3) ? SAMPLE_OFF_CPU : SAMPLE_CPU,
		.weight_ns = chance(recording, 9) ? chance(recording, 300000) : UINT64_MAX,
		.stack = chance(recording, 4) ? &stacks[frame.id] : NULL,
		.blocked = (enum blocked)chance(recording, BLOCKED_COUNT),
		.waker_tid = 1000 + (uint32_t)chance(recording, 12),
		.count = 1,
		.wait = (enum wait_kind)chance(recording, WAIT_COUNT),
		.runnable_ns = chance(recording, 3) ? 0 : chance(recording, 400000),
		.rival_pid = 100 + (uint32_t)chance(recording, 4),
	};

	if (!pointers[frame.id]) {
		frames[frame.id] = frame;
		pointers[frame.id] = &frames[frame.id];
		stacks[frame.id] = (struct stack){ .id = frame.id,
			                           .n_frames = 1,
			                           .frames = &pointers[frame.id] };
	}
	add_sample(recording, process, tid, some_time(recording), &sample);
}

static void add_something(struct recording *recording)
{
	static const char *const functions[] = { "cuLaunchKernel", "cuCtxSynchronize", "cudaMalloc",
		                                 "cuMemcpyHtoD_v2" };
	const struct process *process = recording->processes[chance(recording, 4)];
	uint32_t tid = 1000 + (uint32_t)chance(recording, 10);
	uint64_t begin = some_time(recording), length = chance(recording, 100000);
	uint64_t correlation = chance(recording, 300);

	switch (chance(recording, 8)) {
	case 0:
	case 1:
		add_launch(recording, process, tid, begin,
		           chance(recording, 20) ? begin + length : begin - length, correlation,
		           functions[chance(recording, 4)]);
		break;
	case 2:
	case 3:
		add_work(recording, process, (uint32_t)chance(recording, 3), begin,
		         chance(recording, 20) ? begin + length : begin - length, correlation,
		         chance(recording, 3));
		break;
	case 4:
		facts_event(&recording->facts,
		            &(struct event){
				    .type = EVENT_RANGE,
				    .time_ns = begin,
				    .process = process,
				    .tid = tid,
				    .range = &(struct range){ .kind = chance(recording, 3)
		                                                              ? RANGE_PUSHPOP
		                                                              : RANGE_NOT_MEASURED,
		                                              .name = "step 3",
		                                              .begin_ns = begin,
		                                              .end_ns = begin + length } });
		break;
	default:
		add_some_sample(recording, process, tid);
	}
}

static void test_recordings_of_anything_add_up(void **state)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct recording recording;
		uint64_t n;

		begin_recording(&recording, seed * 977);
		n = chance(&recording, 400);
		while (n--)
			add_something(&recording);
		end_recording(&recording);
	}
}

/* Each pause asks which wait was under way, and a host made any number of calls just then. */
static void test_many_calls_at_one_moment_are_not_asked_for_each_pause(void **state)
{
	struct recording recording;
	uint64_t at = US(1000);
	double from;

	begin_recording(&recording, 1);
	for (unsigned i = 0; i < MANY; i++)
		add_launch(&recording, recording.processes[0], 1000, at, at, 0, "cuLaunchKernel");
	for (uint64_t i = 1; i < 20000; i++) {
		add_launch(&recording, recording.processes[0], 1000, at + 2 * i, at + 2 * i, i,
		           "cuLaunchKernel");
		add_work(&recording, recording.processes[0], 0, at + 2 * i, at + 2 * i + 1, i,
		         true);
	}
	from = seconds();
	end_recording(&recording);
	assert_true(seconds() - from < 5); /* 0.1 s */
}

/* Of each GPU one work is known, and of most calls none. */
static void test_many_calls_without_work_are_not_looked_at_for_each_gpu(void **state)
{
	struct recording recording;
	uint64_t at = US(1000);
	double from;

	begin_recording(&recording, 1);
	for (uint64_t i = 1; i <= MANY; i++)
		add_launch(&recording, recording.processes[0], 1000, at + 2 * i, at + 2 * i, i,
		           "cuLaunchKernel");
	for (uint32_t i = 1; i <= 256; i++)
		add_work(&recording, recording.processes[0], i, at + 2 * i, at + 2 * i + 1, i,
		         true);
	facts_end(&recording.facts, &recording.info);
	from = seconds();
	for (int i = 0; i < 3; i++)
		gpu_times_free(gpu_times_new(&recording.facts), &recording.facts);
	assert_true(seconds() - from < 0.1); /* 0.0 s */
	facts_clear(&recording.facts);
}

/* A GPU of each of many processes: of another user's there is an account all the same. */
static void test_gpus_of_one_user_leave_room_for_those_of_others(void **state)
{
	struct process ann = { .id = 1, .pid = 1, .person = 1000 };
	struct process bob = { .id = 2, .pid = 2, .person = 1001 };
	struct recording recording;
	size_t of_bob = 0;

	begin_recording(&recording, 1);
	for (uint32_t i = 0; i <= 256; i++)
		add_work(&recording, &ann, i, US(1000) + i, US(1001) + i, i, true);
	add_work(&recording, &bob, 0, US(3000), US(3001), 1, true);
	facts_end(&recording.facts, &recording.info);
	for (size_t i = 0; i < recording.facts.n_works; i++)
		of_bob += recording.facts.works[i].process == &bob;
	assert_int_equal(of_bob, 1);
	facts_clear(&recording.facts);
}

/* ---- one thread that all wait for ----------------------------------------------------------- */

#define HOSTS  60u
#define ONE    5000u /* the thread */
#define BEGIN  US(1000)
#define END    US(2001000)
#define DEPTH  60u
#define STACKS 8192u
#define PLACES 40000u

/* Threads that launch, each of which then waits for that one to the end. */
static void add_hosts(struct recording *recording)
{
	const struct sample sample = { .kind = SAMPLE_OFF_CPU,
		                       .weight_ns = END - BEGIN - 2000,
		                       .blocked = BLOCKED_WOKEN,
		                       .waker_tid = ONE,
		                       .count = 1,
		                       .wait = WAIT_LOCK };

	for (uint32_t i = 0; i < HOSTS; i++) {
		add_launch(recording, recording->processes[0], 1000 + i, BEGIN, BEGIN + 1000, i + 1,
		           "cuLaunchKernel");
		add_sample(recording, recording->processes[0], 1000 + i, END, &sample);
	}
}

/* All differ, in lines of two functions whose names have four thousand letters in common. */
static const struct stack *deep_stacks(void)
{
	static struct stack_frame frames[DEPTH][2];
	static const struct stack_frame *of[STACKS][DEPTH];
	static struct stack stacks[STACKS];
	static char functions[2][4000];

	for (unsigned i = 0; i < 2; i++) {
		memset(functions[i], 'f', sizeof(functions[i]) - 1);
		functions[i][sizeof(functions[i]) - 2] = (char)('a' + i);
	}
	for (unsigned k = 0; k < DEPTH; k++)
		for (unsigned i = 0; i < 2; i++)
			frames[k][i] = (struct stack_frame){ .id = 2 * k + i,
				                             .kind = FRAME_PYTHON,
				                             .function = functions[k % 2],
				                             .file = "/home/ann/a.py",
				                             .line = 2 * k + i + 1 };
	for (unsigned i = 0; i < STACKS; i++) {
		for (unsigned k = 0; k < DEPTH; k++)
			of[i][k] = &frames[k][i >> k % 13 & 1];
		stacks[i] = (struct stack){ .id = i, .n_frames = DEPTH, .frames = of[i] };
	}
	return stacks;
}

/* One of them has most of the time, so each thing to change is looked for among all the others. */
static void test_places_without_end_do_not_cost_each_account_all_of_them(void **state)
{
	static const enum wait_kind waits[] = { WAIT_SLEEP, WAIT_DISK, WAIT_FAULT, WAIT_SWAP,
		                                WAIT_CHILD };
	const struct stack *stacks = deep_stacks();
	struct recording recording;

	begin_recording(&recording, 1);
	add_hosts(&recording);
	for (uint64_t i = 0; i < PLACES; i++) {
		const struct sample sample = { .kind = SAMPLE_OFF_CPU,
			                       .weight_ns = i ? 10000 : 1000000000,
			                       .wait = waits[i % 5],
			                       .blocked = BLOCKED_INTERRUPT,
			                       .count = 1,
			                       .stack = &stacks[i % STACKS] };

		add_sample(&recording, recording.processes[0], ONE, BEGIN + 1000000000 + 20000 * i,
		           &sample);
	}
	assert_in_range(end_recording(&recording), PLACES, 200000); /* and not 2,400,000: 11 s */
}

/* What one thread did from BEGIN to END, with so many steps. Returns what is left of them. */
static uint64_t walk_one(struct recording *recording, uint64_t budget, struct account *account)
{
	struct parts *parts;
	struct walk walk;

	facts_end(&recording->facts, &recording->info);
	parts = parts_new(&recording->facts);
	walk = walk_of(&recording->facts, parts, &budget);
	walk_thread(&walk, 0, BEGIN, END, 0);
	parts_finish(parts, account);
	parts_free(parts);
	facts_clear(&recording->facts);
	return budget;
}

static void test_samples_count_as_what_is_looked_at(void **state)
{
	const struct sample sample = { .kind = SAMPLE_CPU, .count = 1 };
	struct recording recording;
	struct account account = { 0 };

	begin_recording(&recording, 1);
	for (uint64_t i = 0; i < 20000; i++)
		add_sample(&recording, recording.processes[0], ONE, BEGIN + 100000 * i, &sample);
	assert_int_equal(walk_one(&recording, 1000, &account), 0);
	assert_true(account.n_parts && account.parts[0].count < 1001);
	free(account.parts);
}

/* A condition variable of Python's own. */
static const struct stack *waits_for_gil(void)
{
	static const struct stack_frame frames[] = {
		{ .id = 0, .function = "pthread_cond_timedwait", .module = "libc.so.6" },
		{ .id = 1, .function = "take_gil", .module = "python3.11" },
	};
	static const struct stack_frame *const of[] = { &frames[0], &frames[1] };
	static const struct stack stack = { .n_frames = 2, .frames = of };

	return &stack;
}

static void test_asking_who_ran_counts_for_each_thread_that_is_asked(void **state)
{
	const struct sample sample = { .kind = SAMPLE_OFF_CPU,
		                       .weight_ns = 50000,
		                       .wait = WAIT_LOCK,
		                       .blocked = BLOCKED_INTERRUPT,
		                       .count = 1,
		                       .stack = waits_for_gil() };
	struct recording recording;
	struct account account = { 0 };

	begin_recording(&recording, 1);
	for (uint64_t i = 1; i <= 2000; i++)
		add_sample(&recording, recording.processes[0], ONE, BEGIN + 1000000 * i, &sample);
	assert_true(walk_one(&recording, 100000, &account) < 1000);
	free(account.parts);
}

/* ---- more than there is room for ------------------------------------------------------------- */

/* Their rows take more than FACTS_BYTES. */
#define CALLS_MANY ((uint64_t)(FACTS_BYTES / sizeof(struct fact_call) + 1000000))

/* How many of them there was no room for, in a recording of so many bytes. */
static uint64_t left_out_of(uint64_t file_bytes)
{
	struct recording recording;
	uint64_t left_out;

	facts_expect(file_bytes);
	begin_recording(&recording, 1);
	for (uint64_t i = 0; i < CALLS_MANY; i++)
		add_launch(&recording, recording.processes[0], 100, i * 10, i * 10 + 5, i,
		           "cuLaunchKernel");
	left_out = recording.facts.left_out;
	facts_clear(&recording.facts);
	facts_expect(0);
	return left_out;
}

static void test_a_small_file_of_many_calls_has_no_room_for_all(void **state)
{
	uint64_t kept = CALLS_MANY - left_out_of(1 << 20);

	assert_in_range(kept * sizeof(struct fact_call), FACTS_BYTES - 1000, FACTS_BYTES);
}

static void test_a_file_as_large_as_its_calls_has(void **state)
{
	assert_int_equal(left_out_of(2 * CALLS_MANY), 0);
}

/* What is beyond is not to be memory. */
static void test_where_no_file_can_be_made_it_has_not(void **state)
{
	struct rlimit before, none;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	none = before;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_FSIZE, &none);
	assert_true(left_out_of(2 * CALLS_MANY) > 0);
	setrlimit(RLIMIT_FSIZE, &before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_more_places_than_are_kept_keep_their_time),
		cmocka_unit_test(test_more_sampled_places_than_are_kept_keep_their_time),
		cmocka_unit_test(test_more_waits_with_samples_than_are_kept_keep_their_time),
		cmocka_unit_test(test_more_waits_than_are_kept_are_left_out_of_the_way),
		cmocka_unit_test(test_a_small_file_of_many_calls_has_no_room_for_all),
		cmocka_unit_test(test_a_file_as_large_as_its_calls_has),
		cmocka_unit_test(test_where_no_file_can_be_made_it_has_not),
		cmocka_unit_test(test_recordings_of_anything_add_up),
		cmocka_unit_test(test_many_calls_at_one_moment_are_not_asked_for_each_pause),
		cmocka_unit_test(test_many_calls_without_work_are_not_looked_at_for_each_gpu),
		cmocka_unit_test(test_gpus_of_one_user_leave_room_for_those_of_others),
		cmocka_unit_test(test_places_without_end_do_not_cost_each_account_all_of_them),
		cmocka_unit_test(test_samples_count_as_what_is_looked_at),
		cmocka_unit_test(test_asking_who_ran_counts_for_each_thread_that_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
