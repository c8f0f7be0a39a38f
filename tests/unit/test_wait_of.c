// SPDX-License-Identifier: MIT
/* What a thread waited for, from the system call and the file that the programs saw. */
#include "stack_events.h"
#include "support.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "capture/stacks/wakers.h"

static enum wait_kind wait_in(int call, unsigned mode, unsigned flags)
{
	const struct wire_blocked record = {
		.how = WIRE_BLOCKED_WOKEN,
		.wait = { .call = call,
		          .mode = (uint16_t)mode,
		          .flags = (uint16_t)(flags | WIRE_WAIT_KNOWN |
		                              (mode ? WIRE_WAIT_FILE : 0)) }
	};

	return wait_of(&record, NULL);
}

static void test_files_tell_by_their_kind(void **state)
{
	(void)state;
	assert_int_equal(wait_in(SYS_read, S_IFSOCK, 0), WAIT_NETWORK);
	assert_int_equal(wait_in(SYS_recvfrom, S_IFSOCK, 0), WAIT_NETWORK);
	assert_int_equal(wait_in(SYS_read, S_IFIFO, 0), WAIT_PIPE);
	assert_int_equal(wait_in(SYS_pread64, S_IFREG, 0), WAIT_DISK);
	assert_int_equal(wait_in(SYS_fsync, S_IFREG, 0), WAIT_DISK);
	assert_int_equal(wait_in(SYS_read, S_IFBLK, 0), WAIT_DISK);
	assert_int_equal(wait_in(SYS_ioctl, S_IFCHR, 0), WAIT_DEVICE);
	assert_int_equal(wait_in(SYS_ppoll, S_IFSOCK, 0), WAIT_NETWORK);
	assert_int_equal(wait_in(SYS_ppoll, 0, 0), WAIT_EVENTS);
	assert_int_equal(wait_in(SYS_ppoll, 0, WIRE_WAIT_NO_FILES), WAIT_SLEEP);
	assert_int_equal(wait_in(SYS_read, 0, 0), WAIT_CALL);
}

static void test_calls_tell_by_themselves(void **state)
{
	(void)state;
	assert_int_equal(wait_in(SYS_futex, 0, 0), WAIT_LOCK);
	assert_int_equal(wait_in(SYS_clock_nanosleep, S_IFREG, 0), WAIT_SLEEP);
	assert_int_equal(wait_in(SYS_wait4, S_IFSOCK, 0), WAIT_CHILD);
	assert_int_equal(wait_in(SYS_epoll_pwait, 0, 0), WAIT_EVENTS);
	assert_int_equal(wait_in(SYS_munmap, S_IFREG, 0), WAIT_CALL);
	assert_int_equal(wait_in(100000, 0, 0), WAIT_CALL);
}

/* An identifier may be the number of an open file. */
static void test_what_processes_share_is_told_by_the_call(void **state)
{
	(void)state;
	assert_int_equal(wait_in(SYS_semtimedop, S_IFIFO, 0), WAIT_LOCK);
	assert_int_equal(wait_in(SYS_semop, 0, 0), WAIT_LOCK);
	assert_int_equal(wait_in(SYS_msgrcv, S_IFREG, 0), WAIT_PIPE);
	assert_int_equal(wait_in(SYS_msgsnd, 0, 0), WAIT_PIPE);
	assert_int_equal(wait_in(SYS_mq_timedreceive, S_IFREG, 0), WAIT_PIPE);
	assert_int_equal(wait_in(SYS_mq_timedreceive, S_IFREG, WIRE_WAIT_TIMED_OUT), WAIT_SLEEP);
	assert_int_equal(wait_in(SYS_mq_timedsend, S_IFREG, 0), WAIT_PIPE);
	assert_int_equal(wait_in(SYS_membarrier, S_IFIFO, 0), WAIT_CALL);
}

static void test_a_signal_is_an_event_unless_a_timer_sent_it(void **state)
{
	(void)state;
	assert_int_equal(wait_in(SYS_rt_sigtimedwait, 0, 0), WAIT_EVENTS);
	assert_int_equal(wait_in(SYS_rt_sigsuspend, 0, 0), WAIT_EVENTS);
	assert_int_equal(wait_in(SYS_rt_sigtimedwait, 0, WIRE_WAIT_TIMED_OUT), WAIT_SLEEP);
	assert_int_equal(wait_in(SYS_rt_sigsuspend, 0, WIRE_WAIT_TIMED_OUT), WAIT_SLEEP);
}

static void test_a_limit_that_is_over_was_waited_for(void **state)
{
	(void)state;
	assert_int_equal(wait_in(SYS_ppoll, S_IFSOCK, WIRE_WAIT_TIMED_OUT), WAIT_SLEEP);
	assert_int_equal(wait_in(SYS_ppoll, S_IFIFO, WIRE_WAIT_TIMED_OUT), WAIT_SLEEP);
	assert_int_equal(wait_in(SYS_epoll_pwait, 0, WIRE_WAIT_TIMED_OUT), WAIT_SLEEP);
	assert_int_equal(wait_in(SYS_futex, 0, WIRE_WAIT_TIMED_OUT), WAIT_LOCK);
	/* by what a driver's or a disk's timer did */
	assert_int_equal(wait_in(SYS_ppoll, S_IFCHR, WIRE_WAIT_TIMED_OUT), WAIT_DEVICE);
	assert_int_equal(wait_in(SYS_fsync, S_IFREG, WIRE_WAIT_TIMED_OUT), WAIT_DISK);
}

static void test_what_the_kernel_counts_as_io_is_the_disk(void **state)
{
	(void)state;
	assert_int_equal(wait_in(SYS_openat, 0, WIRE_WAIT_IO), WAIT_DISK);
	assert_int_equal(wait_in(SYS_futex, 0, WIRE_WAIT_IO), WAIT_DISK);
	assert_int_equal(wait_in(-1, 0, WIRE_WAIT_IO), WAIT_FAULT);
	assert_int_equal(wait_in(-1, 0, 0), WAIT_FAULT);
	assert_int_equal(wait_in(SYS_read, S_IFREG, WIRE_WAIT_STOPPED), WAIT_STOP);
}

static void test_a_stack_tells_what_was_swapped_out(void **state)
{
	struct stack_frame swap = { .kind = FRAME_KERNEL_MODE, .function = "do_swap_page" };
	struct stack_frame wait = { .kind = FRAME_KERNEL_MODE, .function = "io_schedule" };
	struct stack_frame user = { .kind = FRAME_NATIVE, .function = "do_swap_page" };
	struct stack_frame unknown = { .kind = FRAME_KERNEL_MODE };
	const struct stack_frame *swapped[] = { &wait, &unknown, &swap, &user };
	const struct stack_frame *other[] = { &wait, &user, &swap };
	struct stack stack = { .n_frames = ARRAY_SIZE(swapped), .frames = swapped };
	struct wire_blocked record = { .wait = { .call = -1, .flags = WIRE_WAIT_KNOWN } };

	(void)state;
	assert_int_equal(wait_of(&record, &stack), WAIT_SWAP);
	record.wait.call = SYS_read; /* into such memory */
	assert_int_equal(wait_of(&record, &stack), WAIT_SWAP);
	stack.frames = other; /* a function of the program's can have any name */
	stack.n_frames = ARRAY_SIZE(other);
	record.wait.call = -1;
	assert_int_equal(wait_of(&record, &stack), WAIT_FAULT);
}

static void test_without_a_cpu_nothing_else_was_waited_for(void **state)
{
	struct wire_blocked record = { .how = WIRE_BLOCKED_PREEMPTED };

	(void)state;
	assert_int_equal(wait_of(&record, NULL), WAIT_CPU);
	record.how = WIRE_BLOCKED_BRIEF;
	assert_int_equal(wait_of(&record, NULL), WAIT_UNKNOWN);
	record.wait.flags = WIRE_WAIT_CPU;
	assert_int_equal(wait_of(&record, NULL), WAIT_CPU);
}

static void test_every_kind_has_a_word_of_its_own(void **state)
{
	(void)state;
	assert_null(wait_kind_name(WAIT_UNKNOWN));
	assert_null(wait_kind_name(WAIT_COUNT));
	for (int i = WAIT_UNKNOWN + 1; i < WAIT_COUNT; i++) {
		assert_non_null(wait_kind_name((enum wait_kind)i));
		for (int k = WAIT_UNKNOWN + 1; k < i; k++)
			assert_string_not_equal(wait_kind_name((enum wait_kind)i),
			                        wait_kind_name((enum wait_kind)k));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files_tell_by_their_kind),
		cmocka_unit_test(test_calls_tell_by_themselves),
		cmocka_unit_test(test_what_processes_share_is_told_by_the_call),
		cmocka_unit_test(test_a_signal_is_an_event_unless_a_timer_sent_it),
		cmocka_unit_test(test_a_limit_that_is_over_was_waited_for),
		cmocka_unit_test(test_what_the_kernel_counts_as_io_is_the_disk),
		cmocka_unit_test(test_a_stack_tells_what_was_swapped_out),
		cmocka_unit_test(test_without_a_cpu_nothing_else_was_waited_for),
		cmocka_unit_test(test_every_kind_has_a_word_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
