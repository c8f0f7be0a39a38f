// SPDX-License-Identifier: MIT
/* What a seccomp filter would answer. */
#include <linux/audit.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "agent/inject_seccomp.h"
#include "base/array.h"
#include "unit.h"

#define ANSWER(filter, data) seccomp_answer(filter, ARRAY_SIZE(filter), data)
#define ALLOW                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static const struct seccomp_data data = {
	.nr = SYS_openat,
	.arch = AUDIT_ARCH_X86_64,
	.args = { 0x1122334455667788, 7 },
};

static void test_a_call_is_known_by_its_number(void **state)
{
	const struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 13),
		ALLOW,
	};
	struct seccomp_data other = data;

	other.nr = SYS_read;
	assert_int_equal(ANSWER(filter, &data), SECCOMP_RET_ERRNO | 13);
	assert_int_equal(ANSWER(filter, &other), SECCOMP_RET_ALLOW);
}

static void test_arguments_are_looked_at_in_halves(void **state)
{
	const struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x11223344, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_STMT(BPF_RET | BPF_A, 0),
		KILL,
	};

	assert_int_equal(ANSWER(filter, &data), 0x55667788);
}

static void test_memory_and_index_keep_values(void **state)
{
	const struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_IMM, 40),         BPF_STMT(BPF_ST, 3),
		BPF_STMT(BPF_LDX | BPF_MEM, 3),         BPF_STMT(BPF_LD | BPF_IMM, 2),
		BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0), BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 1),
		BPF_STMT(BPF_MISC | BPF_TAX, 0),        BPF_STMT(BPF_STX, 15),
		BPF_STMT(BPF_LD | BPF_MEM, 15),         BPF_STMT(BPF_RET | BPF_A, 0),
	};

	assert_int_equal(ANSWER(filter, &data), 84);
}

static void test_jumps_compare(void **state)
{
	const struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 7, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 7, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 8, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
		KILL,
		ALLOW,
	};

	assert_int_equal(ANSWER(filter, &data), SECCOMP_RET_ALLOW);
}

static void test_nonsense_is_taken_as_deadly(void **state)
{
	const struct sock_filter runs_off[] = { BPF_STMT(BPF_LD | BPF_IMM, 1) };
	const struct sock_filter jumps_off[] = { BPF_JUMP(BPF_JMP | BPF_JA, 1000000, 0, 0), ALLOW };
	const struct sock_filter beyond[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4096), ALLOW };
	const struct sock_filter no_memory[] = { BPF_STMT(BPF_ST, 16), ALLOW };

	assert_int_equal(ANSWER(runs_off, &data), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(ANSWER(jumps_off, &data), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(ANSWER(beyond, &data), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(ANSWER(no_memory, &data), SECCOMP_RET_KILL_PROCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_call_is_known_by_its_number),
		cmocka_unit_test(test_arguments_are_looked_at_in_halves),
		cmocka_unit_test(test_memory_and_index_keep_values),
		cmocka_unit_test(test_jumps_compare),
		cmocka_unit_test(test_nonsense_is_taken_as_deadly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
