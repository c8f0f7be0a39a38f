// SPDX-License-Identifier: MIT
/* Several recordings of the same time: which are read together, and what one consumer gets. */
#include "account_scene.h"
#include "trace_events.h"

#include <sys/sendfile.h>
#include <sys/stat.h>

#include "trace/together.h"

#define BOOT "6a1c1f0e-0000-4000-8000-000000000001"

static struct run_info run_at(double begin_us, double end_us, const char *boot)
{
	struct run_info run = default_run_info();

	run.begin_ns = US(begin_us);
	run.end_ns = US(end_us);
	run.boot = boot;
	return run;
}

/* ---- which ----------------------------------------------------------------------------------- */

static enum together_how joined(double begin_us, double end_us, const char *boot)
{
	struct run_info first = run_at(0, 1000, BOOT), other = run_at(begin_us, end_us, boot);
	struct together together = together_of(&first, NULL, NULL);

	return together_join(&together, &other, NULL, NULL);
}

static void test_one_clock_and_half_of_the_time_are_together(void **state)
{
	assert_int_equal(joined(400, 1400, BOOT), TOGETHER);
	assert_int_equal(joined(600, 1600, BOOT), TOGETHER_OTHER_TIME);
	assert_int_equal(joined(2000, 3000, BOOT), TOGETHER_OTHER_TIME);
	assert_int_equal(joined(1, 301, BOOT), TOGETHER);
	assert_int_equal(joined(900, 1200, BOOT), TOGETHER_OTHER_TIME);
	assert_int_equal(joined(0, 1000, "6a1c1f0e-0000-4000-8000-000000000002"),
	                 TOGETHER_OTHER_CLOCK);
	assert_int_equal(joined(0, 1000, NULL), TOGETHER_NO_CLOCK);
	assert_int_equal(joined(0, 1000, BOOT), TOGETHER_TWIN);
	assert_int_equal(joined(0, 700, BOOT), TOGETHER_TWIN);
}

static void test_a_machine_has_only_so_many(void **state)
{
	struct run_info run = run_at(0, 1000, BOOT);
	struct together together = together_of(&run, NULL, NULL);

	for (size_t i = 1; i < TOGETHER_MAX; i++) {
		run.begin_ns++;
		assert_int_equal(together_join(&together, &run, NULL, NULL), TOGETHER);
	}
	run.begin_ns++;
	assert_int_equal(together_join(&together, &run, NULL, NULL), TOGETHER_TOO_MANY);
}

/* ---- what is read ---------------------------------------------------------------------------- */

static int written(const struct process *process, double begin_us, double end_us)
{
	struct run_info run = run_at(begin_us, end_us, BOOT);
	struct kept_list list = { 0 };
	int fd = memory_file();

	run.lost[LOST_RING_FULL] = 3;
	for (double at = begin_us + 50; at < end_us; at += 100) {
		struct call call = call_at("cudaMalloc", at, 10);

		call.stack = at_line(30);
		struct event event = call_event(process, process->pid, &call);

		keep_event(&list, &event);
	}
	write_list(fd, &run, &list);
	free(list.at);
	return fd;
}

static enum together_how joined_files(int first, int second)
{
	struct trace_file *files[2];
	struct together together;
	struct err err = { 0 };
	enum together_how how;

	assert_int_equal(trace_open(path_of(first), &files[0], &err), 0);
	assert_int_equal(trace_open(path_of(second), &files[1], &err), 0);
	together = together_of(trace_run(files[0]), files[0], NULL);
	how = together_join(&together, trace_run(files[1]), files[1], NULL);
	trace_close(files[0]);
	trace_close(files[1]);
	return how;
}

static int copy_of(int fd, size_t less)
{
	struct stat st;
	int copy = memory_file();

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(sendfile(copy, fd, &(off_t){ 0 }, (size_t)st.st_size - less),
	                 st.st_size - (off_t)less);
	return copy;
}

/* Any file can say when it began, and would hide the one that did. */
static void test_only_what_is_a_copy_is_told_once(void **state)
{
	const struct process *process = new_process(300, "three");
	int one = written(process, 0, 1000), other = written(new_process(301, "four"), 0, 1000);

	assert_int_equal(joined_files(one, copy_of(one, 0)), TOGETHER_SAME);
	assert_int_equal(joined_files(one, copy_of(one, 30)), TOGETHER_SAME);
	assert_int_equal(joined_files(copy_of(one, 30), one), TOGETHER_TWIN);
	assert_int_equal(joined_files(one, other), TOGETHER_TWIN);
	assert_int_equal(joined_files(other, one), TOGETHER_TWIN);
}

static void test_files_of_one_time_have_numbers_of_their_own(void **state)
{
	int fds[] = { written(new_process(100, "one"), 0, 1000),
		      written(new_process(200, "two"), 200, 1200) };
	struct keeper keeper = { .consumer = { &keeper_ops } };
	struct trace_file *files[2];
	struct err errs[2] = { 0 }, err = { 0 };
	struct together together;
	size_t of[2] = { 0 };

	assert_int_equal(trace_open(path_of(fds[0]), &files[0], &err), 0);
	assert_int_equal(trace_open(path_of(fds[1]), &files[1], &err), 0);
	together = together_of(trace_run(files[0]), files[0], NULL);
	assert_int_equal(together_join(&together, trace_run(files[1]), files[1], NULL), TOGETHER);
	assert_int_equal(together_read(&together, files, &keeper.consumer, errs, &err), 0);
	assert_int_equal(keeper.begun, 1);
	assert_int_equal(keeper.ended, 1);
	assert_int_equal(keeper.run.begin_ns, US(200));
	assert_int_equal(keeper.run.end_ns, US(1000));
	assert_int_equal(keeper.run.lost[LOST_RING_FULL], 6);
	for (size_t i = 0; i < keeper.list.count; i++) {
		const struct event *event = &keeper.list.at[i].event;
		const struct call *call = &keeper.list.at[i].call;
		uint32_t file = event->process->file;

		assert_true(event->time_ns >= US(200) && event->time_ns <= US(1000));
		assert_int_equal(event->process->pid, file ? 200 : 100);
		assert_int_equal(event->process->id, file);
		assert_int_equal(call->function->id, file);
		assert_int_equal(call->stack->id, file);
		assert_int_equal(call->stack->frames[0]->id, file * call->stack->n_frames);
		of[file]++;
	}
	assert_int_equal(of[0], 8);
	assert_int_equal(of[1], 8);
	trace_close(files[0]);
	trace_close(files[1]);
	keeper_free(&keeper);
}

/* ---- what is told once ----------------------------------------------------------------------- */

/* The second recording has the first one's process as one that is waited for. */
static void test_a_process_of_two_files_is_told_by_the_one_that_traced_it(void **state)
{
	struct process *again = (struct process *)new_process(the_process()->pid, "again");
	uint64_t first = launch(100, 10), second;

	again->file = 1;
	ran(first, 110, 200);
	sampled(300, 20);
	sampled_in(again, MAIN, 300.5, 99);
	second = launch(400, 30);
	ran(second, 410, 500);
	make_accounts(500);
	assert_int_equal(accounts.n, 1);
	assert_int_equal(facts.threads[0].n_samples, 1);
	for (uint32_t i = 1; i < facts.n_threads; i++)
		assert_int_equal(facts.threads[i].n_samples, 0);
}

/* On another machine the same number is another process. */
static void test_processes_of_two_machines_are_two(void **state)
{
	struct process *other = (struct process *)new_process(the_process()->pid, "other");
	uint64_t first = launch(100, 10), second;

	other->file = other->machine = 1;
	ran(first, 110, 200);
	sampled(300, 20);
	sampled_in(other, MAIN, 300.5, 99);
	second = launch(400, 30);
	ran(second, 410, 500);
	make_accounts(500);
	assert_int_equal(facts.n_threads, 2);
	assert_int_equal(facts.threads[1].n_samples, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_clock_and_half_of_the_time_are_together),
		cmocka_unit_test(test_a_machine_has_only_so_many),
		cmocka_unit_test(test_only_what_is_a_copy_is_told_once),
		cmocka_unit_test(test_files_of_one_time_have_numbers_of_their_own),
		cmocka_unit_test_setup_teardown(
			test_a_process_of_two_files_is_told_by_the_one_that_traced_it, open_scene,
			close_scene),
		cmocka_unit_test_setup_teardown(test_processes_of_two_machines_are_two, open_scene,
		                                close_scene),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
