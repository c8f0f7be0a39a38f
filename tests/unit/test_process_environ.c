// SPDX-License-Identifier: MIT
/* Variables, commands and labels out of bytes that a process chose. */
#include "unit.h"

#include <errno.h>

#include "identity/process_read.h"
#include "identity/process_identity.h"

static const char *find(const char *block, size_t bytes, const char *name)
{
	static char value[16], other[16];
	const struct process_variable wanted[] = { { "OTHER", other, sizeof(other) },
		                                   { name, value, sizeof(value) } };

	process_environ_find(block, bytes, wanted, 2);
	return value;
}

#define FIND(block, name) find(block, sizeof(block) - 1, name)

static void test_variables_by_their_whole_name(void **state)
{
	assert_string_equal(FIND("RANK=3\0LOCAL_RANK=1\0", "RANK"), "3");
	assert_string_equal(FIND("RANK=3\0LOCAL_RANK=1\0", "LOCAL_RANK"), "1");
	assert_string_equal(FIND("RANKS=3\0", "RANK"), "");
	assert_string_equal(FIND("A=RANK=3\0", "RANK"), "");
	assert_string_equal(FIND("RANK\0", "RANK"), "");
	assert_string_equal(FIND("RANK=\0", "RANK"), "");
	assert_string_equal(FIND("", "RANK"), "");
}

static void test_the_first_of_a_name_counts(void **state)
{
	assert_string_equal(FIND("RANK=3\0RANK=4\0", "RANK"), "3");
	assert_string_equal(FIND("RANK=\0RANK=4\0", "RANK"), "");
}

static void test_a_block_without_its_end(void **state)
{
	char *block = malloc(6); /* of just this size, for AddressSanitizer */

	memcpy(block, "RANK=3", 6);
	assert_string_equal(find(block, 6, "RANK"), "3");
	assert_string_equal(find(block, 4, "RANK"), "");
	free(block);
}

static void test_values_are_harmless_and_cut(void **state)
{
	assert_string_equal(FIND("RANK=a\"b\\c\0", "RANK"), "a\"b\\c");
	assert_string_equal(FIND("RANK=1\n2\0", "RANK"), "1\\x0a2");
	assert_string_equal(FIND("RANK=\x1b]0;x\x07\0", "RANK"), "\\x1b]0;x\\x07");
	assert_string_equal(FIND("RANK=\xc3\0", "RANK"), "\\xc3");
	assert_string_equal(FIND("RANK=\xc3\xa4\xff\0", "RANK"), "\xc3\xa4\\xff");
	assert_string_equal(FIND("RANK=0123456789abcdefgh\0", "RANK"), "0123456789abcde");
	assert_string_equal(FIND("RANK=0123456789abcd\xc3\xa4\0", "RANK"), "0123456789abcd");
	assert_string_equal(FIND("RANK=0123456789abc\n\0", "RANK"), "0123456789abc");
}

static const char *command(const char *words, size_t bytes)
{
	static char text[32];

	process_command_parse(words, bytes, text, sizeof(text));
	return text;
}

#define COMMAND(words) command(words, sizeof(words) - 1)

static void test_commands_in_few_words(void **state)
{
	assert_string_equal(COMMAND("/usr/bin/python3.11\0/home/ann/train.py\0--token\0secret\0"),
	                    "python3.11 train.py");
	assert_string_equal(COMMAND("python3\0-u\0-m\0torch.distributed.run\0x\0"),
	                    "python3 torch.distributed.run");
	assert_string_equal(COMMAND("python3\0-W\0ignore\0train.py\0"), "python3 train.py");
	assert_string_equal(COMMAND("python3\0-c\0import secret\0"), "python3");
	assert_string_equal(COMMAND("/opt/gemm\0secret\0"), "gemm");
	assert_string_equal(COMMAND("pythonic\0secret\0"), "pythonic");
	assert_string_equal(COMMAND("bash\0run.sh"), "bash run.sh");
	assert_string_equal(COMMAND("/\0x\0"), "/");
	assert_string_equal(COMMAND("python3\0"), "python3");
	assert_string_equal(COMMAND("\0\0\0"), "");
	assert_string_equal(COMMAND(""), "");
	assert_string_equal(COMMAND("python3\0a\nb\x1b\0"), "python3 a\\x0ab\\x1b");
	assert_string_equal(COMMAND("python3\0a-script-of-a-long-name-indeed.py\0"),
	                    "python3 a-script-of-a-long-name");
}

static void test_labels_have_their_names_and_order(void **state)
{
	struct process_identity identity = { .pid = 42,
		                             .name = "python3",
		                             .user = "ann",
		                             .rank = "3",
		                             .slurm_job = "12",
		                             .chosen = { "blue" } };
	struct process_label_choice choice = { 0 };
	struct process_label labels[PROCESS_LABELS];
	struct process_label_texts texts;
	char all[256] = "";
	size_t n;

	memset(identity.container_id, 'a', 64);
	assert_int_equal(process_labels_choose(&choice, "TEAM", NULL), 0);
	n = process_labels(&identity, &choice, &texts, labels);
	for (size_t i = 0; i < n; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s=%s,", labels[i].name,
		         labels[i].value);
	assert_string_equal(all, "process=python3,pid=42,user=ann,container=aaaaaaaaaaaa,"
	                         "slurm_job=12,rank=3,env_TEAM=blue,");
}

static void test_containers_by_their_names(void **state)
{
	struct process_identity identity = { .container_id = "web-one" };
	char text[IDENTITY_ID];

	process_labels_container(&identity, text);
	assert_string_equal(text, "web-one");
	strcpy(identity.container_name, "trainer");
	process_labels_container(&identity, text);
	assert_string_equal(text, "trainer");
}

static void test_variables_that_cannot_be_labels(void **state)
{
	static const char *const wrong[] = { "", "1A", "A-B", "A=B", "A\n", "\xc3\xa4", "A B" };
	struct process_label_choice choice = { 0 };
	struct err err = { 0 };
	char name[100];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(process_labels_choose(&choice, wrong[i], &err), -EINVAL);
	memset(name, 'A', sizeof(name));
	name[76] = '\0';
	assert_int_equal(process_labels_choose(&choice, name, &err), -EINVAL);
	assert_int_equal(choice.n, 0);
	name[75] = '\0';
	assert_int_equal(process_labels_choose(&choice, name, &err), 0);
	assert_int_equal(process_labels_choose(&choice, name, &err), 0); /* once is enough */
	assert_int_equal(choice.n, 1);
	for (int i = 1; i < IDENTITY_CHOSEN; i++) {
		snprintf(name, sizeof(name), "V%d", i);
		assert_int_equal(process_labels_choose(&choice, name, &err), 0);
	}
	assert_int_equal(process_labels_choose(&choice, "MORE", &err), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_variables_by_their_whole_name),
		cmocka_unit_test(test_the_first_of_a_name_counts),
		cmocka_unit_test(test_a_block_without_its_end),
		cmocka_unit_test(test_values_are_harmless_and_cut),
		cmocka_unit_test(test_commands_in_few_words),
		cmocka_unit_test(test_labels_have_their_names_and_order),
		cmocka_unit_test(test_containers_by_their_names),
		cmocka_unit_test(test_variables_that_cannot_be_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
