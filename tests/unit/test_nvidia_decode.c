// SPDX-License-Identifier: MIT
/* What system calls to NVIDIA's driver are, by their numbers and parameters. */
#include "unit.h"

#include "cuda/api.h"
#include "nvidia/decode.h"
#include "nvidia/tables.h"

#define FRONTEND(nr, bytes) (0xc0000000u | (unsigned)(bytes) << 16 | 0x4600u | (nr))

static uint8_t block[16384], params[NVIDIA_PARAMS_MAX];

static struct nvidia_record record_of(enum nvidia_device device, uint32_t number, uint32_t bytes)
{
	memset(block, 0, sizeof(block));
	memset(params, 0, sizeof(params));
	return (struct nvidia_record){
		.syscall = NVIDIA_IOCTL,
		.device = device,
		.minor = device == NVIDIA_CONTROL ? 255 : 0,
		.command = device == NVIDIA_UVM ? number : FRONTEND(number, bytes),
		.number = number,
		.bytes = bytes,
		.ended = true,
		.head = { .data = block,
		          .count = bytes < NVIDIA_HEAD_MAX ? bytes : NVIDIA_HEAD_MAX },
		.params = { .data = params, .count = sizeof(params) },
	};
}

static void put(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

static struct nvidia_call call_of(const struct nvidia_record *record, unsigned version)
{
	struct nvidia_call call;

	nvidia_identify(record, version, &call);
	return call;
}

static uint64_t value_of(const struct nvidia_record *record, unsigned version, const char *name)
{
	struct nvidia_call call = call_of(record, version);
	struct nvidia_field fields[NVIDIA_FIELDS_MAX];
	struct buf spec = { 0 };
	size_t n = nvidia_fields(&call, fields, &spec);
	uint64_t value;

	buf_free(&spec);
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(fields[i].name, name))
			return nvidia_value(record, &fields[i], &value) ? value : UINT64_MAX;
	}
	fail_msg("%s has no %s", call.name, name);
	return 0;
}

static void assert_named(const struct nvidia_record *record, unsigned version, const char *name,
                         bool known)
{
	struct nvidia_call call = call_of(record, version);

	assert_string_equal(call.name, name);
	assert_int_equal(call.known, known);
}

static void test_controls_have_their_names(void **state)
{
	struct nvidia_record record = record_of(NVIDIA_CONTROL, 0x2a, 32);

	put(block, 0xc1d00001);
	put(block + 4, 0xcaf00007);
	put(block + 8, 0xa06c0101);
	assert_named(&record, 580, "RM_CONTROL GPFIFO_SCHEDULE (TSG)", true);
	assert_int_equal(value_of(&record, 580, "client"), 0xc1d00001);
	assert_int_equal(value_of(&record, 580, "object"), 0xcaf00007);
	put(block + 8, 0xa06f0103);
	assert_named(&record, 580, "RM_CONTROL GPFIFO_SCHEDULE (channel)", true);
	put(block + 8, 0x20800110);
	assert_named(&record, 580, "RM_CONTROL GPU_GET_NAME_STRING", true);
	put(block + 8, 0x00000215);
	assert_named(&record, 580, "RM_CONTROL GPU_ATTACH_IDS (client)", true);
	put(block + 8, 0xa06c0103);
	put(params, 2048);
	assert_int_equal(value_of(&record, 580, "timeslice_us"), 2048);
	put(block + 8, 0xc36f0108);
	put(params, 0x00050017);
	assert_int_equal(value_of(&record, 580, "token"), 0x00050017);
	put(block + 8, 0x20801210);
	put(params, 1);
	put(params + 4, 0xcaf00009);
	put(params + 8, 2);
	put(params + 12, 3);
	assert_int_equal(value_of(&record, 580, "flags"), 1);
	assert_int_equal(value_of(&record, 580, "channel"), 0xcaf00009);
	assert_int_equal(value_of(&record, 580, "graphics"), 2);
	assert_int_equal(value_of(&record, 580, "compute"), 3);
}

static void test_unknown_numbers_are_shown_as_such(void **state)
{
	struct nvidia_record record = record_of(NVIDIA_CONTROL, 0x2a, 32);

	put(block + 8, 0x20809999);
	assert_named(&record, 580, "RM_CONTROL 0x20809999 (legacy)", false);
	put(block + 8, 0x12345678);
	assert_named(&record, 580, "RM_CONTROL 0x12345678", false);
	record = record_of(NVIDIA_CONTROL, 0x2b, 48);
	put(block + 12, 0xdead);
	assert_named(&record, 580, "RM_ALLOC 0xdead", false);
	record = record_of(NVIDIA_CONTROL, 0x63, 8);
	assert_named(&record, 580, "ioctl 0x46/0x63 (nvidiactl)", false);
	record.command = 0x5401;
	assert_named(&record, 580, "ioctl 0x54/0x63 (nvidiactl)", false);
	record = record_of(NVIDIA_UVM, 9999, 0);
	assert_named(&record, 580, "ioctl 9999 (nvidia-uvm)", false);
	record = record_of(NVIDIA_MODESET, 7, 0);
	assert_named(&record, 580, "ioctl 0xc0004607 (nvidia-modeset)", false);
}

static void test_classes_have_names_and_parameters(void **state)
{
	struct nvidia_record record = record_of(NVIDIA_CONTROL, 0x2b, 48);

	put(block + 8, 0xcaf00003);
	put(block + 12, 0xa06c);
	assert_named(&record, 580, "RM_ALLOC KEPLER_CHANNEL_GROUP_A", true);
	assert_int_equal(value_of(&record, 580, "object"), 0xcaf00003);
	put(block + 12, 0xc86f);
	put(params + 132, 17);
	assert_named(&record, 580, "RM_ALLOC HOPPER_CHANNEL_GPFIFO_A", true);
	assert_int_equal(value_of(&record, 580, "channel_id"), 17);
	put(block + 12, 0x40);
	put(params + 64, 2 << 20);
	assert_named(&record, 580, "RM_ALLOC NV01_MEMORY_LOCAL_USER", true);
	assert_int_equal(value_of(&record, 580, "size"), 2 << 20);
	record.params.count = 40; /* what was read ends before it */
	assert_int_equal(value_of(&record, 580, "size"), UINT64_MAX);
}

static int32_t result_of(const struct nvidia_record *record, unsigned version, bool *failed)
{
	struct nvidia_call call = call_of(record, version);

	return nvidia_result(record, &call, failed);
}

static void assert_result(const struct nvidia_record *record, unsigned version, int32_t result)
{
	bool failed;

	assert_int_equal(result_of(record, version, &failed), result);
	assert_int_equal(failed, result != 0);
}

static void test_statuses_are_where_the_version_has_them(void **state)
{
	struct nvidia_record record = record_of(NVIDIA_CONTROL, 0x2b, 32);

	put(block + 24, 0x1f); /* the status until 525, then the size of the parameters */
	put(block + 28, 0x51);
	assert_result(&record, 525, 0x1f);
	assert_result(&record, 535, 0x51);
	assert_result(&record, 0, 0x51); /* not known: the newest */
	record = record_of(NVIDIA_CONTROL, 0x57, 64);
	put(block + 48, 0x22);
	put(block + 56, 0x33);
	assert_result(&record, 575, 0x22);
	assert_result(&record, 580, 0x33);
	record = record_of(NVIDIA_UVM, 34, 24);
	put(block + 8, 0x44);
	put(block + 16, 0x55);
	assert_result(&record, 580, 0x55);
	assert_result(&record, 590, 0x44);
	record = record_of(NVIDIA_UVM, 28, 28);
	put(block + 8, 0x44);
	put(block + 24, 0x55);
	assert_result(&record, 580, 0x55);
	assert_result(&record, 595, 0x44);
}

static void test_a_system_call_that_failed_has_no_status(void **state)
{
	struct nvidia_record record = record_of(NVIDIA_CONTROL, 0x2a, 32);

	put(block + 28, 0x51);
	record.result = -25;
	assert_result(&record, 580, -25);
	record.result = 0;
	record.ended = false;
	assert_result(&record, 580, 0);
	record.ended = true;
	put(block + 28, 0xffffffff); /* no status of the driver's: a target may write anything */
	assert_result(&record, 580, INT32_MAX);
}

static void test_short_blocks_give_what_they_have(void **state)
{
	struct nvidia_record record = record_of(NVIDIA_CONTROL, 0x2a, 32);
	bool failed;

	put(block + 8, 0xa06c0101);
	put(block + 28, 0x51);
	record.head.count = 10;
	assert_named(&record, 580, "RM_CONTROL (not read)", true);
	assert_int_equal(value_of(&record, 580, "object"), 0);
	assert_int_equal(result_of(&record, 580, &failed), 0);
	record.head.count = 31;
	assert_int_equal(result_of(&record, 580, &failed), 0);
	record.head.count = 0;
	assert_int_equal(value_of(&record, 580, "client"), UINT64_MAX);
	record.head.data = NULL;
	assert_named(&record, 580, "RM_CONTROL (not read)", true);
}

static void test_uvm_has_ranges_and_processors(void **state)
{
	struct nvidia_record record = record_of(NVIDIA_UVM, 51, 80);
	struct nvidia_call call = call_of(&record, 580);
	struct nvidia_field fields[NVIDIA_FIELDS_MAX];
	struct buf spec = { 0 };

	put(block + 8, 2 << 20);
	put(block + 16, 0x2e8c0d8c);
	assert_string_equal(call.name, "UVM_MIGRATE");
	assert_string_equal(call.library, "nvidia-uvm");
	assert_int_equal(nvidia_fields(&call, fields, &spec), 5);
	assert_string_equal(spec.data, "base:addr length:size to:string flags:hex node:int");
	assert_int_equal(value_of(&record, 580, "length"), 2 << 20);
	assert_ptr_equal(nvidia_processor(&record, &fields[2]), block + 16);
	record.head.count = 31;
	assert_null(nvidia_processor(&record, &fields[2]));
	buf_free(&spec);
}

/* What is far down in a block is read as a part of its own. */
static void test_windows_reach_what_rows_name(void **state)
{
	struct nvidia_window window = nvidia_uvm_window(33, 580);
	struct nvidia_record record = record_of(NVIDIA_UVM, 33, 24);

	assert_int_equal(window.head, 24);
	assert_int_equal(window.tail_at, 9252);
	assert_int_equal(window.tail, 12);
	put(block + 9256, 0xcaf00009);
	put(block + 9260, 0x1e);
	record.tail = (struct nvidia_bytes){ block + window.tail_at, window.tail, window.tail_at };
	assert_int_equal(value_of(&record, 580, "memory"), 0xcaf00009);
	assert_result(&record, 580, 0x1e);
	window = nvidia_uvm_window(51, 580);
	assert_int_equal(window.head, 76);
	assert_int_equal(window.tail, 0);
	window = nvidia_uvm_window(9999, 580);
	assert_int_equal(window.head, 0);
}

static void test_other_system_calls_name_their_device(void **state)
{
	struct nvidia_record record = { .syscall = NVIDIA_MMAP,
		                        .device = NVIDIA_GPU,
		                        .minor = 3,
		                        .ended = true,
		                        .argument = { 0x7f0000000000, 65536 } };

	assert_named(&record, 580, "mmap nvidia3", true);
	assert_int_equal(value_of(&record, 580, "length"), 65536);
	assert_int_equal(value_of(&record, 580, "address"), 0x7f0000000000);
	record.syscall = NVIDIA_OPEN;
	record.device = NVIDIA_UVM_TOOLS;
	assert_named(&record, 580, "open nvidia-uvm-tools", true);
	record.syscall = NVIDIA_SYSCALLS + 5;
	assert_named(&record, 580, "unknown", false);
}

/* A path is a target's. */
static void test_what_could_not_be_opened_is_named_by_its_path(void **state)
{
	struct nvidia_record record = record_of(NVIDIA_NOTHING, 0, 32);
	struct nvidia_call call;

	record.syscall = NVIDIA_OPEN;
	strcpy((char *)block, "/dev/nvidia-uvm");
	call = call_of(&record, 580);
	assert_string_equal(call.name, "open nvidia-uvm");
	assert_string_equal(call.library, "nvidia-uvm");
	strcpy((char *)block, "/dev/nvidia3\n,\"x");
	assert_named(&record, 580, "open nvidia3", true);
	memset(block, 'a', sizeof(block));
	assert_named(&record, 580, "open aaaaaaaaaaaaaaaaaaaaaaaaaaa", true);
	record.head.count = 0;
	assert_named(&record, 580, "open unknown", true);
}

static void assert_in_order(const struct nvidia_name *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_true(i == 0 || names[i - 1].number < names[i].number);
		assert_true(names[i].name[0]);
	}
}

static void test_names_are_in_order(void **state)
{
	assert_in_order(nvidia_classes, n_nvidia_classes);
	assert_in_order(nvidia_controls, n_nvidia_controls);
	assert_in_order(nvidia_subdevice_controls, n_nvidia_subdevice_controls);
}

/* The fields are all understood, and cuda/row.h understands what is made of them. */
static void assert_fields(const char *name, const char *first, const char *second)
{
	struct nvidia_call call = { .fields = first, .more = second };
	struct nvidia_field fields[NVIDIA_FIELDS_MAX];
	struct buf spec = { 0 };
	size_t n = nvidia_fields(&call, fields, &spec), colons = 0;
	const struct api_arg *args;
	struct api *made;

	for (const char *at = first; *at; at++)
		colons += *at == ':';
	for (const char *at = second; *at; at++)
		colons += *at == ':';
	if (n != colons)
		fail_msg("%s: %zu fields of %zu: %s %s", name, n, colons, first, second);
	api_from_text(&(struct api_text){ .name = "x", .spec = spec.len ? spec.data : "" }, &made);
	if (api_args(made, &args) != n)
		fail_msg("%s: %zu arguments of %zu: %s", name, api_args(made, &args), n, spec.data);
	api_free(made);
	buf_free(&spec);
}

static void assert_rows(const struct nvidia_ioctl *rows, size_t n, enum nvidia_device device)
{
	for (size_t i = 0; i < n; i++) {
		unsigned version = rows[i].first ? rows[i].first : rows[i].last;
		struct nvidia_record record = record_of(device, rows[i].nr, rows[i].bytes);
		struct nvidia_call call = call_of(&record, version);

		assert_memory_equal(call.name, rows[i].name, strlen(rows[i].name));
		assert_ptr_equal(call.fields, rows[i].fields);
		assert_fields(rows[i].name, rows[i].fields, "");
	}
}

static void test_every_row_is_found_and_understood(void **state)
{
	assert_rows(nvidia_rm_ioctls, n_nvidia_rm_ioctls, NVIDIA_CONTROL);
	assert_rows(nvidia_uvm_ioctls, n_nvidia_uvm_ioctls, NVIDIA_UVM);
	for (size_t i = 0; i < n_nvidia_class_params; i++)
		assert_fields("a class", "client:handle@0 parent:handle@4 object:*handle@8",
		              nvidia_class_params[i].fields);
	for (size_t i = 0; i < n_nvidia_control_params; i++)
		assert_fields("a control", "client:handle@0 object:handle@4",
		              nvidia_control_params[i].fields);
}

/* ---- devices --------------------------------------------------------------------------------- */

static void test_devices_come_from_their_list(void **state)
{
	char text[] = "Character devices:\n  1 mem\n195 nvidia\n235 nvidia-caps\n"
		      "511 nvidia-uvm\n\nBlock devices:\n 99 nvidia-uvm\n";
	struct nvidia_numbers numbers[NVIDIA_NUMBERS_MAX];
	FILE *file = fmemopen(text, strlen(text), "r");
	size_t n = nvidia_devices_read(file, numbers);

	fclose(file);
	assert_int_equal(n, 6);
	assert_int_equal(numbers[2].major, 195);
	assert_int_equal(numbers[2].first, 255);
	assert_int_equal(numbers[2].device, NVIDIA_CONTROL);
	assert_int_equal(numbers[3].device, NVIDIA_CAPS);
	assert_int_equal(numbers[4].major, 511);
	assert_int_equal(numbers[4].device, NVIDIA_UVM);
	assert_int_equal(numbers[5].device, NVIDIA_UVM_TOOLS);
	assert_int_equal(nvidia_devices_read(NULL, numbers), 3);
}

static void test_stand_ins_are_parsed(void **state)
{
	struct nvidia_numbers numbers[NVIDIA_NUMBERS_MAX];
	struct err err = { 0 };
	size_t n;

	assert_int_equal(nvidia_devices_parse("1:3=nvidiactl,1:5=nvidia-uvm", numbers, &n, &err),
	                 0);
	assert_int_equal(n, 2);
	assert_int_equal(numbers[1].first, 5);
	assert_int_equal(numbers[1].device, NVIDIA_UVM);
	assert_int_not_equal(nvidia_devices_parse("1:3", numbers, &n, &err), 0);
	assert_int_not_equal(nvidia_devices_parse("1:3=radeon", numbers, &n, &err), 0);
	assert_int_not_equal(nvidia_devices_parse("x", numbers, &n, &err), 0);
}

static void test_processors_have_names(void **state)
{
	static const uint8_t cpu[16] = { 0xa6, 0x5e, 0x0f, 0x4e, 0xd7, 0xd4, 0x7b, 0xa2,
		                         0x50, 0x47, 0x41, 0x2c, 0x14, 0x2a, 0x77, 0x73 };
	static const uint8_t other[16] = { 0x8c, 0x0d, 0x2f, 0x6e };
	struct nvidia_gpus *gpus = nvidia_gpus_new();
	char name[32];

	nvidia_gpus_name(gpus, cpu, name, sizeof(name));
	assert_string_equal(name, "CPU");
	nvidia_gpus_name(gpus, other, name, sizeof(name));
	assert_string_equal(name, "GPU-8c0d2f6e");
	nvidia_gpus_free(gpus);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_controls_have_their_names),
		cmocka_unit_test(test_unknown_numbers_are_shown_as_such),
		cmocka_unit_test(test_classes_have_names_and_parameters),
		cmocka_unit_test(test_statuses_are_where_the_version_has_them),
		cmocka_unit_test(test_a_system_call_that_failed_has_no_status),
		cmocka_unit_test(test_short_blocks_give_what_they_have),
		cmocka_unit_test(test_uvm_has_ranges_and_processors),
		cmocka_unit_test(test_windows_reach_what_rows_name),
		cmocka_unit_test(test_other_system_calls_name_their_device),
		cmocka_unit_test(test_what_could_not_be_opened_is_named_by_its_path),
		cmocka_unit_test(test_names_are_in_order),
		cmocka_unit_test(test_every_row_is_found_and_understood),
		cmocka_unit_test(test_devices_come_from_their_list),
		cmocka_unit_test(test_stand_ins_are_parsed),
		cmocka_unit_test(test_processors_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
