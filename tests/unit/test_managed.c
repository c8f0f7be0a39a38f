// SPDX-License-Identifier: MIT
/* Names of what the driver's functions tell, Xids, and where older drivers have things. */
#include "unit.h"

#include <string.h>

#include "cuda/driver_words.h"
#include "probe/driver_layout.h"

/* What a name does not say is not known in what comes back. */
static void check_back(struct managed event)
{
	char name[MANAGED_NAME];
	struct managed back;

	assert_true(managed_parse(managed_name(&event, name), &back));
	assert_int_equal(back.kind, event.kind);
	assert_int_equal(back.sum, event.sum);
	assert_int_equal(back.xid, event.xid);
	if (event.kind == MANAGED_MIGRATION || event.kind == MANAGED_CPU_FAULT)
		assert_int_equal(back.cause, event.cause);
	if (event.kind == MANAGED_MIGRATION) {
		assert_int_equal(back.src, event.src);
		assert_int_equal(back.dst, event.dst);
	}
}

static void test_names_say_what_they_were_made_of(void **state)
{
	for (uint8_t kind = 0; kind < MANAGED_XID; kind++) {
		check_back((struct managed){ .kind = kind });
		check_back((struct managed){ .kind = kind, .sum = true, .dst = 8 });
	}
	for (uint8_t cause = 0; cause < 9; cause++)
		check_back((struct managed){
			.kind = MANAGED_MIGRATION, .cause = cause, .src = cause, .dst = 33 });
	check_back((struct managed){ .kind = MANAGED_MIGRATION,
	                             .cause = MANAGED_NOT_KNOWN,
	                             .src = MANAGED_NOT_KNOWN,
	                             .dst = 0 });
	check_back((struct managed){ .kind = MANAGED_CPU_FAULT, .cause = 1 });
	check_back((struct managed){ .kind = MANAGED_XID, .xid = 31 });
	check_back((struct managed){ .kind = MANAGED_XID, .xid = 4000000000u });
}

static void test_names_of_others_are_none(void **state)
{
	static const char *const others[] = { "",
		                              "sum of ",
		                              "ioctl",
		                              "CPU faults",
		                              "Xids 3",
		                              "migrations",
		                              "sum of sum of migration",
		                              "open" };
	struct managed event;

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(managed_parse(others[i], &event));
	assert_true(managed_parse("migration GPU99999999999 to (", &event));
	assert_int_equal(event.dst, MANAGED_NOT_KNOWN);
	assert_true(managed_parse("Xid x", &event));
	assert_int_equal(event.xid, 0);
}

/* Outputs have room for these characters only: see trace/objects.c. */
static void test_names_have_plain_characters(void **state)
{
	for (uint32_t number = 0; number < 200; number++) {
		const struct managed event = { .kind = MANAGED_XID, .xid = number, .sum = true };
		char name[MANAGED_NAME];

		managed_name(&event, name);
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		                              "0123456789 _.:/+-#@()[]"),
		                 strlen(name));
		assert_true(strlen(name) < MANAGED_NAME - 1);
	}
}

static void test_lines_of_the_log(void **state)
{
	struct xid_text xid;
	char line[600];

	assert_true(
		xid_parse_line("NVRM: Xid (PCI:0000:18:00): 31, pid=4242, name=train, Ch 00000010, "
	                       "intr 00000000",
	                       &xid));
	assert_int_equal(xid.number, 31);
	assert_int_equal(xid.pid, 4242);
	assert_string_equal(xid.device, "0000:18:00");
	assert_string_equal(xid.name, "train");
	assert_string_equal(xid.text, "Ch 00000010, intr 00000000");
	assert_true(xid_parse_line("NVRM: Xid (PCI:0000:18:00 GPU-I:02): 79, GPU has fallen off\n",
	                           &xid));
	assert_int_equal(xid.pid, 0);
	assert_string_equal(xid.text, "GPU has fallen off");
	memset(line, 'x', sizeof(line));
	memcpy(line, "NVRM: Xid (PCI:0:1): 8, pid=1, name=", 36);
	line[sizeof(line) - 1] = '\0';
	assert_true(xid_parse_line(line, &xid));
	assert_int_equal(strlen(xid.name), sizeof(xid.name) - 1);
}

static void test_lines_that_are_none(void **state)
{
	static const char *const lines[] = {
		"",
		"NVRM: Xid",
		"NVRM: Xid (PCI:",
		"NVRM: Xid (PCI:): 3",
		"NVRM: Xid (PCI:0000:18:00)",
		"NVRM: Xid (PCI:0:1): ",
		"NVRM: Xid (PCI:0:1): x",
		"NVRM: Xid (PCI:0:1): 0, y",
		"NVRM: GPU 0000:18:00 is lost",
		"tmpfs: Unknown parameter 'NVRM: Xid (PCI:0:1): 79, x'",
		"NVRM: Xid (PCI:[42]: segfault at 0 in x): 79"
	};
	struct xid_text xid;

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_false(xid_parse_line(lines[i], &xid));
}

static void test_layouts_by_version(void **state)
{
	struct driver_layout layout;

	assert_true(driver_layout_by_version(595, &layout));
	assert_int_equal(layout.fault_processor, 8);
	assert_int_equal(layout.migration_cause, 56);
	assert_true(driver_layout_by_version(550, &layout));
	assert_int_equal(layout.fault_write, 32);
	assert_true(driver_layout_by_version(570, &layout));
	assert_int_equal(layout.fault_write, 36);
	assert_true(driver_layout_by_version(515, &layout));
	assert_int_equal(layout.fault, 5);
	assert_true(driver_layout_by_version(0, &layout)); /* it does not say: a new one */
	assert_int_equal(layout.fault_processor, 8);
	assert_false(driver_layout_by_version(470, &layout));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_say_what_they_were_made_of),
		cmocka_unit_test(test_names_of_others_are_none),
		cmocka_unit_test(test_names_have_plain_characters),
		cmocka_unit_test(test_lines_of_the_log),
		cmocka_unit_test(test_lines_that_are_none),
		cmocka_unit_test(test_layouts_by_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
