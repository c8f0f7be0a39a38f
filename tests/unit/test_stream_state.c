// SPDX-License-Identifier: MIT
/* What records mean by those that came before: processes, threads, texts, kernels, captures. */
#include "records.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "probe/person.h"

/* ---- processes ----------------------------------------------------------------------------- */

static void test_a_process_is_announced_once_before_its_first_call(void **state)
{
	struct feed *feed = *state;

	feed_call(feed, "cudaMalloc", 0, 0);
	feed_call(feed, "cudaFree", 0, 0);
	assert_seen(feed, "process call(cudaMalloc) call(cudaFree)");
	assert_int_equal(feed->recorder.seen[0].process.id, 0);
	assert_int_equal(feed->recorder.seen[0].process.pid, PROCESS);
	assert_int_equal(feed->recorder.seen[1].call.correlation, 1);
	assert_int_equal(feed->recorder.seen[2].call.correlation, 2);
}

static void test_a_thread_brings_the_name_of_its_process(void **state)
{
	struct feed *feed = *state;

	feed_process(feed, WIRE_THREAD, PROCESS, THREAD, 0, "train");
	feed_call(feed, "cudaMalloc", 0, 0);
	assert_seen(feed, "process thread call(cudaMalloc)");
	assert_string_equal(last_seen(feed)->process.comm, "train");
	assert_int_equal(feed->recorder.seen[1].tid, THREAD);
}

static size_t looks; /* that helpers were asked for */

static ssize_t count_look(pid_t pid, enum process_look how, const char *name, void *to,
                          size_t bytes)
{
	looks++;
	return -ESRCH;
}

/* A program may begin and end 10,000 a second; to ask a helper takes longer than all the rest. */
static void test_no_helper_is_asked_about_a_thread(void **state)
{
	uint32_t pid = (uint32_t)getpid();
	struct feed *feed = *state;

	feed_process(feed, WIRE_THREAD, pid, pid, 0, "train");
	looks = 0;
	process_look_by(count_look);
	for (int i = 0; i < 40; i++) /* one after the other, of one number */
		feed_process(feed, WIRE_THREAD, pid, pid, 0, "train");
	process_look_by(process_look_here);
	assert_int_equal(feed->recorder.count, 42);
	assert_int_equal(looks, 0);
}

static void test_a_child_is_a_process_from_its_fork_on(void **state)
{
	struct feed *feed = *state;

	feed_process(feed, WIRE_THREAD, PROCESS, THREAD, 0, "train");
	feed_process(feed, WIRE_FORK, PROCESS, THREAD, CHILD, "train");
	assert_seen(feed, "process thread process");
	assert_int_equal(last_seen(feed)->process.pid, CHILD);
	assert_int_equal(last_seen(feed)->process.id, 1);
	assert_string_equal(last_seen(feed)->process.comm, "train");
}

static struct buf told_of_persons; /* what the stream told of processes' numbers */

void __wrap_helper_process_begun(pid_t pid);
void __wrap_helper_process_begun(pid_t pid)
{
	buf_printf(&told_of_persons, "+%d ", (int)(pid - (pid_t)PROCESS));
}

void __wrap_helper_process_ended(pid_t pid, uint64_t end_ns);
void __wrap_helper_process_ended(pid_t pid, uint64_t end_ns)
{
	buf_printf(&told_of_persons, "-%d ", (int)(pid - (pid_t)PROCESS));
}

/* Else another user's process has its number, and that one pays for what is asked of it. */
static void test_who_a_process_was_is_not_who_has_its_number_next(void **state)
{
	struct feed *feed = *state;

	buf_reset(&told_of_persons);
	feed_call(feed, "cudaMalloc", 0, 0);
	feed_process(feed, WIRE_EXIT, PROCESS, PROCESS, 0, "");
	feed_process(feed, WIRE_EXEC, CHILD, CHILD, 0, "");
	feed->now_ns += 2000000;
	feed_call(feed, "cudaMalloc", 0, 0);
	assert_string_equal(told_of_persons.data, "+0 -0 +0 ");
	buf_free(&told_of_persons);
}

static void test_a_process_ends_and_its_pid_may_come_again(void **state)
{
	struct feed *feed = *state;

	feed_call(feed, "cudaMalloc", 0, 0);
	feed_process(feed, WIRE_EXIT, PROCESS, PROCESS, 0, "");
	feed->now_ns += 2000000;
	feed_call(feed, "cudaMalloc", 0, 0);
	assert_seen(feed, "process call(cudaMalloc) exit process call(cudaMalloc)");
	assert_int_equal(feed->recorder.seen[2].process.id, 0);
	assert_int_equal(last_seen(feed)->process.id, 1);
}

/* Both threads find themselves the last; the later one was in a call. */
static void test_a_process_that_ends_twice_ends_once(void **state)
{
	struct feed *feed = *state;
	struct wire_call late;

	feed_call(feed, "cudaMalloc", 0, 0);
	feed_process(feed, WIRE_EXIT, PROCESS, PROCESS, 0, "");
	late = call_of(feed, "cudaDeviceSynchronize");
	late.head.flags = WIRE_UNFINISHED;
	feed_record(feed, &late);
	feed_process(feed, WIRE_EXIT, PROCESS, THREAD, 0, "");
	assert_seen(feed, "process call(cudaMalloc) call(cudaDeviceSynchronize) exit");
	feed->now_ns += 2000000;
	feed_process(feed, WIRE_FORK, CHILD + 1, CHILD + 1, CHILD, "sh");
	assert_seen(feed, "process call(cudaMalloc) call(cudaDeviceSynchronize) exit process");
}

/* One that is told of once, as nearly all are, is believed a little later. */
static void test_the_end_of_a_process_with_threads_comes_in_order(void **state)
{
	struct feed *feed = *state;
	uint64_t exit_ns;

	feed_call(feed, "cudaMalloc", 0, 0);
	feed_process(feed, WIRE_EXIT, PROCESS, PROCESS, 0, "");
	exit_ns = feed->now_ns;
	feed_process(feed, WIRE_FORK, CHILD + 1, CHILD + 1, CHILD, "sh");
	assert_seen(feed, "process call(cudaMalloc) process");
	assert_int_equal(pipeline_flush(feed->pipeline, &(struct err){ 0 }), 0);
	assert_seen(feed, "process call(cudaMalloc) process exit");
	assert_int_equal(last_seen(feed)->process.pid, PROCESS);
	assert_true(last_seen(feed)->time_ns >= exit_ns);
	assert_true(last_seen(feed)->time_ns >= feed->recorder.seen[2].time_ns);
}

/* Processor time that processes take which come and go. */
static uint64_t churn_ns(struct feed *feed)
{
	uint64_t begin_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID);

	for (uint32_t i = 0; i < 2000; i++) {
		feed_process(feed, WIRE_FORK, PROCESS, THREAD, CHILD + 1 + i, "");
		feed_process(feed, WIRE_EXIT, CHILD + 1 + i, CHILD + 1 + i, 0, "");
		feed->recorder.count = 0;
	}
	return clock_of_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
}

static void test_the_end_of_a_process_takes_no_longer_where_others_have_many_threads(void **state)
{
	struct feed *feed = *state;
	uint64_t alone_ns = churn_ns(feed);

	for (uint32_t i = 0; i < 16000; i++) {
		struct wire_call call = call_of(feed, "cudaMalloc");

		call.head.tid = 6000000 + i;
		feed_record(feed, &call);
		feed->recorder.count = 0;
	}
	assert_true(churn_ns(feed) < 4 * alone_ns);
}

static void test_the_end_of_an_unknown_process_is_nothing(void **state)
{
	feed_process(*state, WIRE_EXIT, PROCESS, PROCESS, 0, "");
	feed_process(*state, WIRE_EXEC, PROCESS, PROCESS, 0, "sh");
	assert_seen(*state, "");
}

static void test_exec_ends_one_process_and_begins_another(void **state)
{
	struct feed *feed = *state;

	feed_process(feed, WIRE_THREAD, PROCESS, THREAD, 0, "sh");
	feed_process(feed, WIRE_EXEC, PROCESS, PROCESS, 0, "train");
	assert_seen(feed, "process thread exit process");
	assert_string_equal(feed->recorder.seen[2].process.comm, "sh");
	assert_int_equal(last_seen(feed)->process.pid, PROCESS);
	assert_int_equal(last_seen(feed)->process.id, 1);
	assert_string_equal(last_seen(feed)->process.comm, "train");
}

static void test_the_name_of_a_living_process_is_the_present_one(void **state)
{
	struct feed *feed = *state;

	feed_process(feed, WIRE_THREAD, (uint32_t)getpid(), (uint32_t)getpid(), 0, "before exec");
	/* as the kernel cuts it */
	assert_string_equal(last_seen(feed)->process.comm, "test_stream_sta");
}

/* ---- texts --------------------------------------------------------------------------------- */

static void test_a_string_argument_belongs_to_the_next_call_of_its_function(void **state)
{
	struct feed *feed = *state;

	feed_name(feed, "cuLinkAddFile_v2", NAME_OF_ARGUMENT, 0, "/tmp/a.ptx");
	feed_call(feed, "cudaFree", 0, 0);
	assert_string_equal(last_seen(feed)->text, "");
	feed_call(feed, "cuLinkAddFile_v2", 0, 0);
	assert_string_equal(last_seen(feed)->text, "/tmp/a.ptx");
	feed_call(feed, "cuLinkAddFile_v2", 0, 0);
	assert_string_equal(last_seen(feed)->text, "");
}

static void test_begin_and_end_of_a_call_have_its_text(void **state)
{
	struct feed *feed = *state;
	struct wire_call record;

	feed_name(feed, "cuLinkAddFile_v2", NAME_OF_ARGUMENT, 0, "/tmp/a.ptx");
	record = call_of(feed, "cuLinkAddFile_v2");
	record.head.type = WIRE_BEGIN;
	feed_record(feed, &record);
	assert_string_equal(last_seen(feed)->text, "/tmp/a.ptx");
	record.head.type = WIRE_CALL;
	feed_record(feed, &record);
	assert_string_equal(last_seen(feed)->text, "/tmp/a.ptx");
}

/* The eBPF side cannot wait for a page that is not resident, and sends the address alone. */
static void test_a_name_without_its_text_is_read_from_the_process(void **state)
{
	static const char path[] = "/tmp/a.ptx";
	struct feed *feed = *state;
	uint32_t self = (uint32_t)getpid();
	struct wire_name name = { .head = { .type = WIRE_NAME,
		                            .hook = hook_of("cuLinkAddFile_v2"),
		                            .tgid = self,
		                            .tid = self },
		                  .from = (uintptr_t)path,
		                  .source = NAME_OF_ARGUMENT };
	struct wire_call record = call_of(feed, "cuLinkAddFile_v2");

	feed_record(feed, &name);
	record.head.tgid = record.head.tid = self;
	feed_record(feed, &record);
	assert_string_equal(last_seen(feed)->text, path);
	name.head.tgid = PROCESS; /* gone */
	feed_record(feed, &name);
	feed_record(feed, &record);
	assert_string_equal(last_seen(feed)->text, "");
}

static void test_a_name_that_names_what_was_made_is_a_text_too(void **state)
{
	struct feed *feed = *state;

	feed_name(feed, "cuModuleLoad", NAME_OF_CALL, 0x77, "/tmp/a.cubin");
	feed_call(feed, "cuModuleLoad", 0, 0);
	assert_string_equal(last_seen(feed)->text, "/tmp/a.cubin");
}

static void test_texts_of_threads_are_apart(void **state)
{
	struct feed *feed = *state;
	struct wire_call other = call_of(feed, "cuLinkAddFile_v2");

	other.head.tid++;
	feed_name(feed, "cuLinkAddFile_v2", NAME_OF_ARGUMENT, 0, "/tmp/a.ptx");
	feed_record(feed, &other);
	assert_string_equal(last_seen(feed)->text, "");
}

/* A thread that died within a call, and another that got its number. */
static void test_a_thread_with_a_used_number_begins_afresh(void **state)
{
	struct feed *feed = *state;

	feed_name(feed, "cuLinkAddFile_v2", NAME_OF_ARGUMENT, 0, "/tmp/a.ptx");
	feed_process(feed, WIRE_THREAD, PROCESS, THREAD, 0, "train");
	feed_call(feed, "cuLinkAddFile_v2", 0, 0);
	assert_string_equal(last_seen(feed)->text, "");
}

static void test_threads_end_with_their_process(void **state)
{
	struct feed *feed = *state;

	feed_call(feed, "cudaFree", 0, 0);
	feed_name(feed, "cuLinkAddFile_v2", NAME_OF_ARGUMENT, 0, "/tmp/a.ptx");
	feed_process(feed, WIRE_EXEC, PROCESS, PROCESS, 0, "train");
	feed_call(feed, "cuLinkAddFile_v2", 0, 0);
	assert_string_equal(last_seen(feed)->text, "");
}

/* ---- kernels ------------------------------------------------------------------------------- */

static void test_a_launch_has_the_name_that_its_handle_was_given(void **state)
{
	struct feed *feed = *state;

	feed_name(feed, "cuModuleGetFunction", NAME_OF_CALL, 0x55d0, "vectorAdd");
	feed_call(feed, "cuModuleGetFunction", 0, 0);
	assert_string_equal(last_seen(feed)->text, "vectorAdd");
	feed_launch(feed, 0x55d0, 0);
	assert_string_equal(last_seen(feed)->kernel, "vectorAdd");
	feed_launch(feed, 0x55e0, 0);
	assert_string_equal(last_seen(feed)->kernel, "0x55e0");
}

static void test_a_launch_has_the_name_that_its_handle_leads_to(void **state)
{
	struct feed *feed = *state;

	feed_name(feed, "cuLaunchKernel", NAME_OF_HANDLE, 0x55d0, "vectorAdd");
	feed_launch(feed, 0x55d0, 0);
	assert_string_equal(last_seen(feed)->kernel, "vectorAdd");
	assert_string_equal(last_seen(feed)->text, "");
}

static void test_names_of_other_things_name_no_kernel(void **state)
{
	struct feed *feed = *state;

	feed_name(feed, "cuModuleGetGlobal_v2", NAME_OF_CALL, 0x55d0, "aVariable");
	feed_launch(feed, 0x55d0, 0);
	assert_string_equal(last_seen(feed)->kernel, "0x55d0");
}

static void test_a_handle_made_from_a_kernel_has_its_name(void **state)
{
	struct feed *feed = *state;
	struct wire_call record;

	feed_name(feed, "cuLibraryGetKernel", NAME_OF_CALL, 0x10, "vectorAdd");
	record = call_with(feed, "cuKernelGetFunction", 0x7ffc0000, 0x10);
	record.word[0] = 0x20;
	feed_record(feed, &record);
	feed_launch(feed, 0x20, 0);
	assert_string_equal(last_seen(feed)->kernel, "vectorAdd");
}

static void test_a_call_that_failed_makes_no_handle(void **state)
{
	struct feed *feed = *state;
	struct wire_call record;

	feed_name(feed, "cuLibraryGetKernel", NAME_OF_CALL, 0x10, "vectorAdd");
	record = call_with(feed, "cuKernelGetFunction", 0x7ffc0000, 0x10);
	record.word[0] = 0x20;
	record.result = 400;
	feed_record(feed, &record);
	feed_launch(feed, 0x20, 0);
	assert_string_equal(last_seen(feed)->kernel, "0x20");
}

static void test_after_a_module_is_unloaded_a_handle_may_mean_another_kernel(void **state)
{
	struct feed *feed = *state;

	feed_name(feed, "cuModuleGetFunction", NAME_OF_CALL, 0x55d0, "first");
	feed_name(feed, "cuLaunchKernel", NAME_OF_HANDLE, 0x55d0, "second");
	feed_launch(feed, 0x55d0, 0);
	assert_string_equal(last_seen(feed)->kernel, "first");
	feed_call(feed, "cuModuleUnload", 0x77, 0);
	feed_name(feed, "cuLaunchKernel", NAME_OF_HANDLE, 0x55d0, "second");
	feed_launch(feed, 0x55d0, 0);
	assert_string_equal(last_seen(feed)->kernel, "second");
}

static void test_names_of_kernels_end_with_their_process(void **state)
{
	struct feed *feed = *state;

	feed_call(feed, "cuInit", 0, 0);
	feed_name(feed, "cuModuleGetFunction", NAME_OF_CALL, 0x55d0, "vectorAdd");
	feed_process(feed, WIRE_EXEC, PROCESS, PROCESS, 0, "train");
	feed_launch(feed, 0x55d0, 0);
	assert_string_equal(last_seen(feed)->kernel, "0x55d0");
}

/* ---- launches within launches -------------------------------------------------------------- */

static void launch_nested(struct feed *feed, uint64_t handle, uint8_t depth)
{
	struct wire_call record = launch_of(feed, handle, 0);

	nest(&record, depth);
	feed_record(feed, &record);
}

static void test_an_outer_launch_takes_the_name_of_the_one_within(void **state)
{
	struct feed *feed = *state;
	struct wire_call outer = call_with(feed, "cudaLaunchKernel", 0x400100, 0);

	feed_name(feed, "cuLaunchKernel", NAME_OF_HANDLE, 0x55d0, "vectorAdd");
	launch_nested(feed, 0x55d0, 1);
	feed_record(feed, &outer);
	assert_string_equal(last_seen(feed)->kernel, "vectorAdd");
	feed_call(feed, "cudaLaunchKernel", 0x400200, 0);
	assert_string_equal(last_seen(feed)->kernel, "0x400200");
}

static void test_through_three_launches_the_name_reaches_the_outermost(void **state)
{
	struct feed *feed = *state;
	struct wire_call outer = call_with(feed, "cudaLaunchKernelExC", 0x400100, 0x400100);
	struct wire_call middle = call_with(feed, "cudaLaunchKernel", 0x400100, 0);

	nest(&middle, 1);
	feed_name(feed, "cuLaunchKernel", NAME_OF_HANDLE, 0x55d0, "vectorAdd");
	launch_nested(feed, 0x55d0, 2);
	feed_record(feed, &middle);
	assert_string_equal(last_seen(feed)->kernel, "vectorAdd");
	feed_record(feed, &outer);
	assert_string_equal(last_seen(feed)->kernel, "vectorAdd");
}

static void test_launches_side_by_side_keep_their_names_apart(void **state)
{
	struct feed *feed = *state;

	feed_name(feed, "cuLaunchKernel", NAME_OF_HANDLE, 0x55d0, "vectorAdd");
	launch_nested(feed, 0x55d0, 1);
	launch_nested(feed, 0x55e0, 1);
	assert_string_equal(last_seen(feed)->kernel, "0x55e0");
}

static void test_a_launch_within_that_has_no_name_lends_none(void **state)
{
	struct feed *feed = *state;
	struct wire_call outer = call_with(feed, "cudaLaunchKernel", 0x400100, 0);

	launch_nested(feed, 0x55d0, 1);
	feed_record(feed, &outer);
	assert_string_equal(last_seen(feed)->kernel, "0x400100");
}

/* cudaMemset may launch a kernel of its own. */
static void test_a_launch_within_an_earlier_call_lends_no_name(void **state)
{
	struct feed *feed = *state;

	feed_name(feed, "cuLaunchKernel", NAME_OF_HANDLE, 0x55d0, "fill");
	launch_nested(feed, 0x55d0, 1);
	feed_call(feed, "cudaLaunchKernel", 0x400200, 0);
	assert_string_equal(last_seen(feed)->kernel, "0x400200");
}

static void test_an_outer_launch_that_has_a_name_keeps_it(void **state)
{
	struct feed *feed = *state;
	struct wire_call outer = call_with(feed, "cudaLaunchKernel", 0x400100, 0);

	feed_name(feed, "cuLaunchKernel", NAME_OF_HANDLE, 0x55d0, "inner");
	feed_name(feed, "__cudaRegisterFunction", NAME_OF_CALL, 0x400100, "outer");
	launch_nested(feed, 0x55d0, 1);
	feed_record(feed, &outer);
	assert_string_equal(last_seen(feed)->kernel, "outer");
}

/* ---- where handles hold their names -------------------------------------------------------- */

struct kernel_handle {
	uint64_t before[3];
	const char *name;
};

static uint64_t person;

uint64_t __wrap_helper_person_of(pid_t pid);
uint64_t __wrap_helper_person_of(pid_t pid)
{
	return person;
}

static void get_function_of_this_process(struct feed *feed, const struct kernel_handle *handle)
{
	static struct wire_name name;

	name.head = (struct wire_head){ .type = WIRE_NAME,
		                        .hook = hook_of("cuModuleGetFunction"),
		                        .tgid = (uint32_t)getpid(),
		                        .tid = (uint32_t)getpid() };
	name.key = (uintptr_t)handle;
	name.source = NAME_OF_CALL;
	name.head.bytes = (uint16_t)(snprintf(name.text, sizeof(name.text), "vectorAdd") + 1);
	feed_record(feed, &name);
}

static void test_the_first_named_handle_of_a_process_tells_where_names_are(void **state)
{
	static const struct kernel_handle handle = { .name = "vectorAdd" };
	static const struct kernel_handle nameless = { .name = "other" };
	struct feed *feed = *state;

	feed->state.name_offset = 8;
	feed_process(feed, WIRE_THREAD, (uint32_t)getpid(), (uint32_t)getpid(), 0, "");
	get_function_of_this_process(feed, &handle);
	assert_int_equal(feed->state.name_offset, offsetof(struct kernel_handle, name));
	get_function_of_this_process(feed, &nameless);
	assert_int_equal(feed->state.name_offset, offsetof(struct kernel_handle, name));
}

#define NO_PROCESSES 5000000 /* numbers from here on: no machine has so many */

static bool is_one_of_others(struct feed *feed, uint32_t pid)
{
	return !strcmp(pipeline_process(feed->pipeline, pid)->comm, "[others]");
}

/* Who has processes begin and end all the time leaves places to those of others. */
static void test_a_user_does_not_take_the_places_of_all_processes(void **state)
{
	struct feed *feed = *state;
	uint32_t pid = NO_PROCESSES, most = 32768 / 4 * 3;

	person = 1001;
	for (uint32_t i = 0; i < most; i++)
		assert_false(is_one_of_others(feed, pid++));
	assert_true(is_one_of_others(feed, pid++));
	person = 1002;
	assert_false(is_one_of_others(feed, pid++));
	person = PERSON_ROOT;
	for (uint32_t i = most + 1; i < 32768; i++)
		assert_false(is_one_of_others(feed, pid++));
	assert_true(is_one_of_others(feed, pid));
	person = 0;
}

static void begin_anew(struct feed *feed)
{
	feed_process(feed, WIRE_EXEC, (uint32_t)getpid(), (uint32_t)getpid(), 0, "");
	feed_process(feed, WIRE_THREAD, (uint32_t)getpid(), (uint32_t)getpid(), 0, "");
}

/* Else a user could take the names of kernels from all others. */
static void test_a_users_library_tells_nothing_of_where_names_are(void **state)
{
	static const struct kernel_handle handle = { .name = "vectorAdd" };
	struct feed *feed = *state;

	feed->state.name_offset = 8;
	begin_anew(feed);
	libraries[0].owner = 1234;
	get_function_of_this_process(feed, &handle);
	libraries[0].owner = PERSON_ROOT;
	assert_int_equal(feed->state.name_offset, 8);
}

static void test_where_names_are_is_changed_by_who_found_it_alone(void **state)
{
	static const struct kernel_handle handle = { .name = "vectorAdd" };
	static const struct kernel_handle nameless = { .name = "other" };
	struct feed *feed = *state;

	person = 1001;
	begin_anew(feed);
	get_function_of_this_process(feed, &handle);
	assert_int_equal(feed->state.name_offset, offsetof(struct kernel_handle, name));
	person = 1002;
	begin_anew(feed);
	get_function_of_this_process(feed, &nameless);
	assert_int_equal(feed->state.name_offset, offsetof(struct kernel_handle, name));
	person = 1001;
	begin_anew(feed);
	get_function_of_this_process(feed, &nameless);
	assert_true(feed->state.name_offset == WIRE_NO_OFFSET);
}

/* ---- graph capture ------------------------------------------------------------------------- */

static bool launch_is_captured(struct feed *feed, uint64_t stream)
{
	feed_launch(feed, 0x55d0, stream);
	return last_call(feed)->flags & CALL_CAPTURED;
}

static void test_a_launch_on_a_capturing_stream_is_marked(void **state)
{
	struct feed *feed = *state;

	feed_call(feed, "cuStreamBeginCapture_v2", 0x10, 0);
	assert_true(launch_is_captured(feed, 0x10));
	assert_false(launch_is_captured(feed, 0x20));
	feed_call(feed, "cuStreamEndCapture", 0x10, 0x7ffc0000);
	assert_false(launch_is_captured(feed, 0x10));
}

static void test_what_else_runs_on_the_device_is_marked_too(void **state)
{
	struct feed *feed = *state;
	struct wire_call copy = call_of(feed, "cuMemcpyAsync");

	feed_call(feed, "cuStreamBeginCapture_v2", 0x10, 0);
	set_reg(&copy, 3, 0x10);
	feed_record(feed, &copy);
	assert_int_equal(last_call(feed)->flags, CALL_CAPTURED);
	feed_call(feed, "cuGraphLaunch", 0x99, 0x10);
	assert_int_equal(last_call(feed)->flags, CALL_CAPTURED);
	feed_call(feed, "cuLaunchHostFunc", 0x10, 0);
	assert_int_equal(last_call(feed)->flags, CALL_CAPTURED);
	feed_call(feed, "cuStreamQuery", 0x10, 0);
	assert_int_equal(last_call(feed)->flags, 0);
}

static void test_capture_is_followed_by_hooks_that_are_not_shown(void **state)
{
	struct feed *feed = *state;

	hooks[hook_of("cudaStreamBeginCapture")].group = HOOK_SUPPORT;
	hooks[hook_of("cudaEventRecord")].group = HOOK_SUPPORT;
	hooks[hook_of("cudaStreamWaitEvent")].group = HOOK_SUPPORT;
	feed_call(feed, "cudaStreamBeginCapture", 0x10, 0);
	feed_call(feed, "cudaEventRecord", 0xe1, 0x10);
	feed_call(feed, "cudaStreamWaitEvent", 0x20, 0xe1);
	assert_true(launch_is_captured(feed, 0x20));
	assert_seen(feed, "process call(cuLaunchKernel)");
}

static void test_a_capture_that_did_not_begin_captures_nothing(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_with(feed, "cuStreamBeginCapture_v2", 0x10, 0);

	record.result = 900;
	feed_record(feed, &record);
	assert_false(launch_is_captured(feed, 0x10));
}

static void test_a_broken_capture_ends_by_an_end_that_fails(void **state)
{
	static const int32_t results[] = { 901, 904 }; /* invalidated; forked and not joined */
	struct feed *feed = *state;

	for (size_t i = 0; i < 2; i++) {
		struct wire_call record = call_with(feed, "cuStreamEndCapture", 0x10, 0x7ffc0000);

		feed_call(feed, "cuStreamBeginCapture_v2", 0x10, 0);
		record.result = results[i];
		feed_record(feed, &record);
		assert_int_equal(last_call(feed)->flags, CALL_FAILED);
		assert_false(launch_is_captured(feed, 0x10));
	}
}

static void test_an_end_by_the_wrong_thread_ends_nothing(void **state)
{
	struct feed *feed = *state;
	struct wire_call record;

	feed_call(feed, "cuStreamBeginCapture_v2", 0x10, 0);
	record = call_with(feed, "cuStreamEndCapture", 0x10, 0x7ffc0000);
	record.result = 908; /* CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD */
	feed_record(feed, &record);
	assert_true(launch_is_captured(feed, 0x10));
}

static void test_without_returns_captures_are_followed_as_if_all_went_well(void **state)
{
	struct feed *feed = *state;
	struct wire_call record = call_with(feed, "cuStreamBeginCapture_v2", 0x10, 0);

	record.head.flags = WIRE_NO_RETURN;
	feed_record(feed, &record);
	assert_true(launch_is_captured(feed, 0x10));
	record = call_with(feed, "cuStreamEndCapture", 0x10, 0x7ffc0000);
	record.head.flags = WIRE_NO_RETURN;
	feed_record(feed, &record);
	assert_false(launch_is_captured(feed, 0x10));
}

/* With its return given up, a nested begin may have failed: the call around it knows. */
static void test_a_nested_begin_without_a_return_is_the_outer_calls_business(void **state)
{
	struct feed *feed = *state;
	struct wire_call outer = call_with(feed, "cudaStreamBeginCapture", 0x10, 0);
	struct wire_call inner = call_with(feed, "cuStreamBeginCapture_v2", 0x10, 0);

	nest(&inner, 1);
	inner.head.flags |= WIRE_NO_RETURN;
	feed_record(feed, &inner);
	outer.result = 1;
	feed_record(feed, &outer);
	assert_false(launch_is_captured(feed, 0x10));
}

static void test_captures_end_with_their_process(void **state)
{
	struct feed *feed = *state;

	feed_call(feed, "cuStreamBeginCapture_v2", 0x10, 0);
	feed_process(feed, WIRE_EXEC, PROCESS, PROCESS, 0, "train");
	assert_false(launch_is_captured(feed, 0x10));
}

static void test_mappings_are_not_the_streams_business(void **state)
{
	const struct wire_map map = { .head = { .type = WIRE_MAP, .tgid = PROCESS } };

	feed_record(*state, &map);
	assert_seen(*state, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, feed_open, feed_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_process_is_announced_once_before_its_first_call),
		TEST(test_a_thread_brings_the_name_of_its_process),
		TEST(test_no_helper_is_asked_about_a_thread),
		TEST(test_a_child_is_a_process_from_its_fork_on),
		TEST(test_who_a_process_was_is_not_who_has_its_number_next),
		TEST(test_a_process_ends_and_its_pid_may_come_again),
		TEST(test_a_process_that_ends_twice_ends_once),
		TEST(test_the_end_of_a_process_with_threads_comes_in_order),
		TEST(test_the_end_of_a_process_takes_no_longer_where_others_have_many_threads),
		TEST(test_the_end_of_an_unknown_process_is_nothing),
		TEST(test_a_user_does_not_take_the_places_of_all_processes),
		TEST(test_exec_ends_one_process_and_begins_another),
		TEST(test_the_name_of_a_living_process_is_the_present_one),
		TEST(test_a_string_argument_belongs_to_the_next_call_of_its_function),
		TEST(test_begin_and_end_of_a_call_have_its_text),
		TEST(test_a_name_without_its_text_is_read_from_the_process),
		TEST(test_a_name_that_names_what_was_made_is_a_text_too),
		TEST(test_texts_of_threads_are_apart),
		TEST(test_a_thread_with_a_used_number_begins_afresh),
		TEST(test_threads_end_with_their_process),
		TEST(test_a_launch_has_the_name_that_its_handle_was_given),
		TEST(test_a_launch_has_the_name_that_its_handle_leads_to),
		TEST(test_names_of_other_things_name_no_kernel),
		TEST(test_a_handle_made_from_a_kernel_has_its_name),
		TEST(test_a_call_that_failed_makes_no_handle),
		TEST(test_after_a_module_is_unloaded_a_handle_may_mean_another_kernel),
		TEST(test_names_of_kernels_end_with_their_process),
		TEST(test_an_outer_launch_takes_the_name_of_the_one_within),
		TEST(test_through_three_launches_the_name_reaches_the_outermost),
		TEST(test_launches_side_by_side_keep_their_names_apart),
		TEST(test_a_launch_within_that_has_no_name_lends_none),
		TEST(test_a_launch_within_an_earlier_call_lends_no_name),
		TEST(test_an_outer_launch_that_has_a_name_keeps_it),
		TEST(test_the_first_named_handle_of_a_process_tells_where_names_are),
		TEST(test_a_users_library_tells_nothing_of_where_names_are),
		TEST(test_where_names_are_is_changed_by_who_found_it_alone),
		TEST(test_a_launch_on_a_capturing_stream_is_marked),
		TEST(test_what_else_runs_on_the_device_is_marked_too),
		TEST(test_capture_is_followed_by_hooks_that_are_not_shown),
		TEST(test_a_capture_that_did_not_begin_captures_nothing),
		TEST(test_a_broken_capture_ends_by_an_end_that_fails),
		TEST(test_an_end_by_the_wrong_thread_ends_nothing),
		TEST(test_without_returns_captures_are_followed_as_if_all_went_well),
		TEST(test_a_nested_begin_without_a_return_is_the_outer_calls_business),
		TEST(test_captures_end_with_their_process),
		TEST(test_mappings_are_not_the_streams_business),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
