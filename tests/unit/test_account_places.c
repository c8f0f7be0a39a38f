// SPDX-License-Identifier: MIT
/* Where time is put down to that has no stack of its own, or that another process's thread takes.
 */
#include "account_scene.h"

static const struct account *the_account(double end_us)
{
	exited(the_process(), end_us);
	make_accounts(end_us);
	assert_int_equal(accounts.n, 1);
	assert_all_add_up();
	return &accounts.of[0];
}

/* Ten steps of 1 ms. In each the thread waits for a socket, in line 27, from 200 to 900 us. */
static void steps_wait_for_a_socket(void)
{
	for (double at = 0; at < 10000; at += 1000) {
		ran(launch(at + 50, 30), at + 60, at + 100);
		waited(WAIT_NETWORK, at + 200, at + 900, 0, 27);
	}
}

/* Its process waits for a request until 195 us, sleeps up to 850 us, in line 71, and answers. */
static void serves(const struct process *server)
{
	for (double at = 0; at < 10000; at += 1000) {
		waited_in(server, server->pid, WAIT_NETWORK, at - 90 > 0 ? at - 90 : 1, at + 195, 0,
		          70);
		waited_in(server, server->pid, WAIT_SLEEP, at + 200, at + 850, 0, 71);
	}
	sampled_in(server, server->pid, 9905, 72);
}

static void runs_always(const struct process *process)
{
	for (double at = 0; at < 11000; at += 500)
		sampled_in(process, process->pid, at, 80);
}

static void test_the_peer_of_a_socket_is_who_runs_as_waits_end(void **state)
{
	static const struct process *server, *other;
	const struct account *account;

	server = server ? server : new_process(800, "server");
	other = other ? other : new_process(801, "other");
	runs_always(other);
	serves(server);
	steps_wait_for_a_socket();
	account = the_account(10000);
	assert_true(us_of(account, ACCOUNT_SLEEP, 71) > 5000);
	assert_true(us_of(account, ACCOUNT_NETWORK, ANY) < 1);
	assert_true(us_of(account, ACCOUNT_COMPUTING, 80) < 1);
	assert_int_equal(facts.threads[part_of(account, ACCOUNT_SLEEP, 71)->thread].process->pid,
	                 800);
}

static void test_who_runs_always_is_nobodys_peer(void **state)
{
	static const struct process *other;
	const struct account *account;

	other = other ? other : new_process(802, "other");
	runs_always(other);
	steps_wait_for_a_socket();
	account = the_account(10000);
	assert_true(us_of(account, ACCOUNT_NETWORK, 27) > 5000);
	assert_true(us_of(account, ACCOUNT_COMPUTING, 80) < 1);
}

/* So many threads wait so often, each at a place of its own. */
#define THREADS 4000
#define WAITS   4

/* Another process has threads that would be asked each time. */
static void test_places_without_end_are_not_all_asked_for_peers(void **state)
{
	static const struct process *other;

	other = other ? other : new_process(803, "other");
	for (uint32_t i = 1; i <= THREADS; i++)
		for (double at = 0; at < 1000 * WAITS; at += 1000) {
			waited_in(the_process(), 10000 + i, WAIT_NETWORK, at + 200, at + 900, 0, 0);
			if (i < 50)
				sampled_in(other, 20000 + i, at + 800, 80);
		}
	launch(50, 30);
	the_account(1000 * WAITS);
	assert_int_equal(facts.left_out, (THREADS - 1024) * WAITS);
}

/* Another thread waits in line 71 for the one that launches, which has lines of its own. */
static void test_a_thread_with_lines_of_its_own_is_there(void **state)
{
	const struct account *account;

	waited_in(the_process(), 51, WAIT_LOCK, 10, 940, MAIN, 71);
	waited(WAIT_DISK, 210, 600, 0, 0);
	waited(WAIT_DISK, 600, 620, 0, 33);
	for (double at = 625; at < 900; at += 50)
		sampled(at, 33);
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_DISK, 33, 410);
	assert_us(account, ACCOUNT_DISK, 71, 0);
	assert_us(account, ACCOUNT_COMPUTING, 71, 0);
}

static void sampled_in_native(uint32_t tid, double at_us, struct stack_frame *frame)
{
	static struct stack stacks[100];
	static const struct stack_frame *frames[100];
	struct sample sample = sample_of(SAMPLE_CPU, 1000, &stacks[frame->id]);

	frames[frame->id] = frame;
	stacks[frame->id] =
		(struct stack){ .id = frame->id, .n_frames = 1, .frames = &frames[frame->id] };
	see(sample_event(the_process(), tid, at_us, &sample));
}

static void sampled_in_framework(uint32_t tid, double at_us)
{
	static struct stack_frame frame = { .id = 90,
		                            .kind = FRAME_NATIVE,
		                            .function = "at::native::add",
		                            .module = "libtorch_cuda.so" };

	sampled_in_native(tid, at_us, &frame);
}

/* In a thread of a pool, which is in no list of libraries; of a line, if it is known. */
static void sampled_in_pool(double at_us, uint32_t line)
{
	static struct stack_frame frames[2] = {
		{ .id = 88, .kind = FRAME_NATIVE, .function = "multiply", .module = "libfast.so" },
		{ .id = 89, .kind = FRAME_NATIVE, .function = "multiply", .module = "libfast.so" }
	};

	frames[1].file = "fast.c";
	frames[1].line = line;
	sampled_in_native(MAIN, at_us, &frames[line != 0]);
}

/* One of a framework has none: it is where it is waited for. */
static void test_a_thread_without_lines_is_where_it_is_waited_for(void **state)
{
	const struct account *account;

	waited_in(the_process(), 51, WAIT_LOCK, 10, 1900, MAIN, 71);
	for (double at = 225; at < 900; at += 50)
		sampled_in_framework(MAIN, at);
	ran(launch(90, 0), 100, 200);
	ran(launch(950, 0), 955, 1055);
	account = the_account(2000);
	assert_true(us_of(account, ACCOUNT_COMPUTING, 71) > 700);
}

static const struct account *account_of_pool(uint32_t line)
{
	waited_in(the_process(), 51, WAIT_LOCK, 10, 1900, MAIN, 71);
	for (double at = 225; at < 900; at += 50)
		sampled_in_pool(at, line);
	ran(launch(90, 0), 100, 200);
	ran(launch(950, 0), 955, 1055);
	return the_account(2000);
}

static void test_native_code_without_lines_is_where_it_is_waited_for(void **state)
{
	assert_true(us_of(account_of_pool(0), ACCOUNT_COMPUTING, 71) > 700);
}

static void test_native_code_with_lines_is_there(void **state)
{
	assert_true(us_of(account_of_pool(23), ACCOUNT_COMPUTING, 23) > 700);
}

/* A thread of a server's, whose lines are told as the program's are, and one of another package's,
 * which a line of the user's waits for. */
static const struct account *account_of_package(const char *file)
{
	static struct stack_frame line = {
		.id = 87, .kind = FRAME_PYTHON, .function = "Engine.step", .line = 87
	};

	line.file = file;
	waited_in(the_process(), 51, WAIT_LOCK, 10, 1900, MAIN, 71);
	for (double at = 225; at < 900; at += 50)
		sampled_in_native(MAIN, at, &line);
	ran(launch(90, 0), 100, 200);
	ran(launch(950, 0), 955, 1055);
	return the_account(2000);
}

static void test_a_package_that_is_the_program_is_there(void **state)
{
	assert_true(us_of(account_of_package("/x/site-packages/vllm/engine.py"), ACCOUNT_COMPUTING,
	                  87) > 700);
}

static void test_a_library_of_python_is_where_it_is_waited_for(void **state)
{
	assert_true(us_of(account_of_package("/x/site-packages/torch/utils/data/pin.py"),
	                  ACCOUNT_COMPUTING, 71) > 700);
}

/* And so is the one that it waits for itself. */
static void test_threads_that_wait_for_each_other_are_where_the_last_is_waited_for(void **state)
{
	const struct account *account;

	waited_in(the_process(), 51, WAIT_LOCK, 10, 1900, MAIN, 71);
	for (double at = 225; at < 900; at += 50)
		sampled_in_framework(52, at);
	waited(WAIT_LOCK, 205, 910, 52, 0);
	ran(launch(90, 0), 100, 200);
	ran(launch(950, 0), 955, 1055);
	account = the_account(2000);
	assert_true(us_of(account, ACCOUNT_COMPUTING, 71) > 700);
	assert_int_equal(tid_of(part_of(account, ACCOUNT_COMPUTING, 71)->thread), 52);
}

static void test_a_call_without_a_stack_is_where_a_sample_in_it_is(void **state)
{
	const struct account *account;

	ran(launch(90, 0), 100, 200);
	sampled(92, 33);
	ran(launch(1000, 0), 1010, 1310);
	sampled(990, 34); /* just before */
	ran(launch(2500, 0), 2510, 2610);
	sampled(2200, 35); /* long before */
	account = the_account(3000);
	assert_true(us_of(account, ACCOUNT_KERNELS, 34) > us_of(account, ACCOUNT_KERNELS, 33));
	assert_us(account, ACCOUNT_KERNELS, 33, 100);
	assert_us(account, ACCOUNT_KERNELS, 34, 400); /* with the third, which is alike */
	assert_us(account, ACCOUNT_KERNELS, 35, 0);
}

/* A set, which takes no time, and two launches, which run for 100 and 200 us. */
static void set_and_launch(double at, bool measured)
{
	uint64_t first, second;

	call_from(at, at + 5, "cuMemsetD8Async", 0);
	first = launch(at + 10, 0);
	second = launch(at + 20, 0);
	if (!measured)
		return;
	ran(first, at + 40, at + 140);
	ran(second, at + 140, at + 340);
}

/* No sample is in the window: what was called before tells calls apart that ask for the same. */
static void test_places_of_calls_in_a_window_are_those_of_calls_that_are_alike(void **state)
{
	const struct account *account;

	for (int i = 0; i < 9; i++)
		set_and_launch(100 + 1000 * i, i > 0 && i < 4);
	not_measured(the_process(), 4000, 9000);
	sampled(4112, 33);
	sampled(5112, 33);
	sampled(6117, 34); /* before the second: what is in it says more */
	sampled(7122, 35);
	account = the_account(9000);
	assert_us(account, ACCOUNT_KERNELS, 33, 300);
	assert_us(account, ACCOUNT_KERNELS, 35, 600);
}

/* More places than are kept of one kind of call: each is as likely, the first and the last. */
static void test_of_very_many_places_of_a_call_some_are_kept(void **state)
{
	const struct account *account;
	const int n = 3000;

	for (int i = 0; i < n; i++) {
		double at = 100 + 10 * i;

		ran(launch(at, i % 3 ? 0 : 30 + i % 2), at + 5, at + 10);
	}
	account = the_account(100 + 10 * n);
	assert_us(account, ACCOUNT_KERNELS, 0, 0);
	assert_true(us_of(account, ACCOUNT_KERNELS, 30) > 0.4 * 5 * n);
	assert_true(us_of(account, ACCOUNT_KERNELS, 31) > 0.4 * 5 * n);
}

/* A call that a sample is in has a place by it, and is no less one of all calls: their time is
 * where samples are, not where the few are that lie between them. */
static void test_samples_in_calls_speak_for_all_calls(void **state)
{
	const struct account *account;

	for (int i = 0; i < 20; i++) {
		double at = 100 + 100 * i;

		ran(call_from(at, at + 90, "cuLaunchKernel", 0), at + 95, at + 99);
		if (i % 5 == 0)
			sampled(at + 50, 33);
	}
	sampled(100 + 100 * 7 + 93, 34); /* between two */
	account = the_account(3000);
	assert_true(us_of(account, ACCOUNT_LAUNCHING, 33) >
	            3 * us_of(account, ACCOUNT_LAUNCHING, 34));
}

/* ---- what runs there ----------------------------------------------------------------------- */

/* In a function of a library, which a framework calls in that line. */
static void sampled_in_module(double at_us, const char *module, const char *function, uint32_t line)
{
	static struct stack_frame inner[2], framework;
	static const struct stack_frame *pointers[2][3];
	static struct stack stacks[2];
	uint32_t at = function != NULL, id = 94 + at;
	struct sample sample = sample_of(SAMPLE_CPU, 1000, &stacks[at]);

	inner[at] = (struct stack_frame){ .id = id,
		                          .kind = strncmp(module, "libcuda", 7) ? FRAME_NATIVE
		                                                                : FRAME_CUDA,
		                          .function = function,
		                          .module = module };
	framework = (struct stack_frame){ .id = 96,
		                          .kind = FRAME_NATIVE,
		                          .function = "CopyToHost",
		                          .module = "libtorch_cuda.so" };
	pointers[at][0] = &inner[at];
	pointers[at][1] = &framework;
	pointers[at][2] = at_line(line)->frames[0];
	stacks[at] = (struct stack){ .id = id, .n_frames = 3, .frames = pointers[at] };
	see(sample_event(the_process(), MAIN, at_us, &sample));
}

static void sampled_in_libc(double at_us, const char *function, uint32_t line)
{
	sampled_in_module(at_us, "libc.so.6", function, line);
}

static void test_what_a_compiler_does_is_compiling(void **state)
{
	const struct account *account;

	call_from(205, 210, "cuLaunchKernel", 44);
	for (double at = 225; at < 900; at += 50)
		sampled_in_module(at, "libnvrtc.so.13", NULL, 44);
	pause_until(950);
	account = the_account(2000);
	assert_true(us_of(account, ACCOUNT_COMPILING, 44) > 600);
	assert_us(account, ACCOUNT_COMPUTING, ANY, 0);
}

/* Of a call that loads a module what the driver's compiler takes; others are what they are. */
static void test_what_the_driver_compiles_is_compiling(void **state)
{
	const struct account *account;

	call_from(205, 900, "cuModuleLoadData", 0);
	for (double at = 225; at < 550; at += 50)
		sampled_in_module(at, "libnvidia-ptxjitcompiler.so.580.159.04", NULL, 44);
	for (double at = 575; at < 900; at += 50)
		sampled_in_module(at, "libcuda.so.580.159.04", "upload", 45);
	pause_until(950);
	account = the_account(2000);
	assert_true(us_of(account, ACCOUNT_COMPILING, 44) > 300);
	assert_true(us_of(account, ACCOUNT_DRIVER, 45) > 300);
}

/* Calls that mostly take no time are not recorded; some take long all the same. */
static void test_a_call_that_is_not_recorded_is_one(void **state)
{
	const struct account *account;

	call_from(205, 210, "cuLaunchKernel", 44);
	for (double at = 225; at < 900; at += 50)
		sampled_in_module(at, "libcuda.so.1", "cuMemGetInfo_v2", 44);
	pause_until(950);
	account = the_account(2000);
	assert_true(us_of(account, ACCOUNT_DRIVER, 44) > 600);
	assert_us(account, ACCOUNT_COMPUTING, ANY, 0);
}

static void test_asking_whether_it_is_done_is_computing(void **state)
{
	const struct account *account;

	call_from(205, 210, "cuLaunchKernel", 44);
	sampled_in_module(225, "libcuda.so.1", "cuEventQuery", 44);
	pause_until(950);
	account = the_account(2000);
	assert_true(us_of(account, ACCOUNT_COMPUTING, 44) > 600);
	assert_us(account, ACCOUNT_DRIVER, ANY, 0);
}

/* A copy of 1 MB from the GPU at a line, and then so many of the C library's samples at line 44. */
static const struct account *account_of_copies(uint32_t copied_in, const char *function)
{
	struct call copy = call_at("cudaMemcpy", 205, 5);

	copy.op = OP_COPY;
	copy.args.bytes = 1 << 20;
	copy.args.direction = DIRECTION_D2H;
	call_in(the_process(), MAIN, copy, copied_in);
	for (double at = 225; at < 900; at += 50)
		sampled_in_libc(at, function, 44);
	pause_until(950);
	return the_account(2000);
}

/* It has no name: the C library chooses one of several for the CPU. */
static void test_memory_that_is_copied_where_the_gpus_is_is_a_copy(void **state)
{
	const struct account *account = account_of_copies(44, NULL);

	assert_true(us_of(account, ACCOUNT_COPY_CALL, 44) > 700);
	assert_us(account, ACCOUNT_COMPUTING, ANY, 0);
}

static void test_memory_that_is_copied_elsewhere_is_computing(void **state)
{
	const struct account *account = account_of_copies(45, NULL);

	assert_true(us_of(account, ACCOUNT_COMPUTING, 44) > 700);
}

static void test_what_else_the_c_library_does_is_computing(void **state)
{
	const struct account *account = account_of_copies(44, "qsort");

	assert_true(us_of(account, ACCOUNT_COMPUTING, 44) > 700);
}

/* ---- stacks that are cut ------------------------------------------------------------------- */

static void sampled_deep(double at_us, uint32_t number)
{
	static struct stack_frame frames[4];
	static const struct stack_frame *pointers[4];
	static struct stack stacks[4];
	static const char *const functions[] = { "save", "save_list", "batch_list", "hash" };
	struct sample sample = sample_of(SAMPLE_CPU, 1000, &stacks[number]);

	frames[number] = (struct stack_frame){ .id = 80 + number,
		                               .kind = FRAME_NATIVE,
		                               .function = functions[number],
		                               .module = "_pickle.cpython-311.so" };
	pointers[number] = &frames[number];
	stacks[number] = (struct stack){
		.id = 80 + number, .end = STACK_TOO_DEEP, .n_frames = 1, .frames = &pointers[number]
	};
	see(sample_event(the_process(), MAIN, at_us, &sample));
}

static void test_a_thread_deep_in_a_library_is_where_it_was_before(void **state)
{
	const struct account *account;

	sampled(210, 33);
	for (uint32_t i = 0; i < 4; i++)
		sampled_deep(300 + 100 * i, i);
	sampled(800, 34);
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_COMPUTING, 33, 750.0 * 5 / 6);
	assert_us(account, ACCOUNT_COMPUTING, 34, 750.0 / 6);
}

static void test_a_thread_that_was_seen_nowhere_is_in_the_library(void **state)
{
	const struct account *account;

	sampled_deep(300, 0);
	sampled_deep(400, 1);
	pause_until(950);
	account = the_account(2000);
	assert_us(account, ACCOUNT_COMPUTING, 0, 750);
	assert_string_equal(frame_of(part_of(account, ACCOUNT_COMPUTING, 0))->module,
	                    "_pickle.cpython-311.so");
}

/* A graph is launched in line 30; its kernels were captured in lines 50 and 51, one before anybody
 * looked, and those of other launches are where they are launched. */
static void test_nodes_of_graphs_are_where_they_were_captured(void **state)
{
	const struct account *account;

	for (double at = 0; at < 10000; at += 1000) {
		struct activity node = { .kind = ACTIVITY_KERNEL,
			                 .context = 1,
			                 .stream = 7,
			                 .graph = 1,
			                 .graph_node = 5,
			                 .stack = at_line(50),
			                 .correlation = launch(at + 10, 30),
			                 .begin_ns = US(at + 20),
			                 .end_ns = US(at + 620) };

		see(activity_event(the_process(), &node));
		node.begin_ns = US(at + 620);
		node.end_ns = US(at + 720);
		node.stack = at_line(51);
		see(activity_event(the_process(), &node));
		node.begin_ns = US(at + 720);
		node.end_ns = US(at + 770);
		node.stack = NULL;
		see(activity_event(the_process(), &node));
		ran(launch(at + 760, 31), at + 780, at + 980);
	}
	account = the_account(10000);
	assert_in_range(us_of(account, ACCOUNT_KERNELS, 50), 5990, 6010);
	assert_in_range(us_of(account, ACCOUNT_KERNELS, 51), 990, 1010);
	assert_in_range(us_of(account, ACCOUNT_KERNELS, 30), 490, 510);
	assert_in_range(us_of(account, ACCOUNT_KERNELS, 31), 1990, 2010);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_peer_of_a_socket_is_who_runs_as_waits_end),
		TEST(test_who_runs_always_is_nobodys_peer),
		TEST(test_places_without_end_are_not_all_asked_for_peers),
		TEST(test_a_thread_with_lines_of_its_own_is_there),
		TEST(test_a_thread_without_lines_is_where_it_is_waited_for),
		TEST(test_native_code_without_lines_is_where_it_is_waited_for),
		TEST(test_native_code_with_lines_is_there),
		TEST(test_a_package_that_is_the_program_is_there),
		TEST(test_a_library_of_python_is_where_it_is_waited_for),
		TEST(test_threads_that_wait_for_each_other_are_where_the_last_is_waited_for),
		TEST(test_a_call_without_a_stack_is_where_a_sample_in_it_is),
		TEST(test_places_of_calls_in_a_window_are_those_of_calls_that_are_alike),
		TEST(test_of_very_many_places_of_a_call_some_are_kept),
		TEST(test_samples_in_calls_speak_for_all_calls),
		TEST(test_what_a_compiler_does_is_compiling),
		TEST(test_what_the_driver_compiles_is_compiling),
		TEST(test_a_call_that_is_not_recorded_is_one),
		TEST(test_asking_whether_it_is_done_is_computing),
		TEST(test_memory_that_is_copied_where_the_gpus_is_is_a_copy),
		TEST(test_memory_that_is_copied_elsewhere_is_computing),
		TEST(test_what_else_the_c_library_does_is_computing),
		TEST(test_a_thread_deep_in_a_library_is_where_it_was_before),
		TEST(test_a_thread_that_was_seen_nowhere_is_in_the_library),
		TEST(test_nodes_of_graphs_are_where_they_were_captured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
