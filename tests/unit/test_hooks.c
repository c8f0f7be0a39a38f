// SPDX-License-Identifier: MIT
/* Hooks of one's own, as text: what is understood, and what each mistake is told as. */
#include "unit.h"

#include "base/array.h"
#include "hooks/hook_list.h"

static struct hook_spec spec;
static struct hook_mistake mistake;

static void understood(const char *text)
{
	spec_free(&spec);
	if (!spec_read(text, NULL, &spec, &mistake))
		fail_msg("%s\n%*s^ %s", text, (int)mistake.at, "", mistake.says);
}

static int free_spec(void **state)
{
	spec_free(&spec);
	return 0;
}

/* ---- what is understood -------------------------------------------------------------------- */

static void test_a_function_of_a_library_with_arguments(void **state)
{
	understood("uprobe:libnccl.so:ncclAllReduce(send=arg0:ptr, count=arg2:u64, "
	           "dtype=arg3:i32, comm=arg5:ptr) as nccl");
	assert_int_equal(spec.kind, SPEC_UPROBE);
	assert_string_equal(spec.module, "libnccl.so");
	assert_string_equal(spec.glob, "ncclAllReduce");
	assert_string_equal(spec.as, "nccl");
	assert_int_equal(spec.n_values, 4);
	assert_string_equal(spec.value[1].name, "count");
	assert_int_equal(spec.value[1].index, 2);
	assert_int_equal(spec.value[2].type, SPEC_I32);
	assert_true(spec_is_span(&spec));
}

static void test_each_kind_of_place(void **state)
{
	understood("uentry:/opt/app/train:_ZN5torch*");
	assert_string_equal(spec.module, "/opt/app/train");
	assert_false(spec_is_span(&spec));
	understood("uretprobe:libc.so.6:malloc(ret:ptr)");
	assert_int_equal(spec.value[0].base, BASE_RET);
	understood("usdt:libtorch.so:torch:operator_begin(arg0:str)");
	assert_string_equal(spec.provider, "torch");
	assert_string_equal(spec.glob, "operator_begin");
	understood("kprobe:nvidia_unlocked_ioctl");
	assert_string_equal(spec.module, "");
	assert_true(spec_is_kernel(&spec));
	understood("kprobe:nvidia_uvm:uvm_*[0-9]");
	assert_string_equal(spec.module, "nvidia_uvm");
	assert_string_equal(spec.glob, "uvm_*[0-9]");
	understood("kretprobe:nvidia:nvidia_open(ret:i32)");
	understood("tracepoint:sched:sched_switch(prev_pid, next=next_pid:i32) if next_pid == 0");
	assert_string_equal(spec.module, "sched");
	assert_string_equal(spec.value[0].field, "prev_pid");
	assert_int_equal(spec.n_values, 3);
	assert_true(spec.value[2].hidden);
	assert_false(spec_is_span(&spec));
}

static void test_memory_is_read_in_steps(void **state)
{
	understood("uprobe:a:f(x=arg1+16:u32, y=*arg2:u64@return, z=arg0+8->24:i16, w=arg3-8, "
	           "v=**arg4, t=arg5+32:char[16])");
	assert_int_equal(spec.value[0].n_loads, 1);
	assert_int_equal(spec.value[0].offset[0], 16);
	assert_true(spec.value[1].on_return);
	assert_int_equal(spec.value[1].offset[0], 0);
	assert_int_equal(spec.value[2].n_loads, 2);
	assert_int_equal(spec.value[2].offset[1], 24);
	assert_int_equal(spec.value[3].offset[0], -8);
	assert_int_equal(spec.value[4].n_loads, 2);
	assert_int_equal(spec.value[5].chars, 16);
	understood("kprobe:f(x=*arg1:u32@user@return, y=arg0+8:kchar[16])");
	assert_true(spec.value[0].in_user && spec.value[0].on_return);
	assert_int_equal(spec.value[1].chars, 16);
}

static bool passes(const char *filter, uint64_t count, uint64_t flags, int64_t result,
                   uint64_t duration_ns)
{
	char text[256];
	uint64_t values[] = { count, flags, (uint64_t)result };

	snprintf(text, sizeof(text), "uprobe:a:f(count=arg0, flags=arg1:hex, r=ret:i32) if %s",
	         filter);
	understood(text);
	return spec_filter_passes(spec.filter, spec.n_filter, values, duration_ns);
}

static void test_filters_compare_and_join(void **state)
{
	assert_true(passes("count > 1024", 1025, 0, 0, 0));
	assert_false(passes("count > 1024", 1024, 0, 0, 0));
	assert_true(passes("count >= 1KiB", 1024, 0, 0, 0));
	assert_true(passes("flags & 0x4", 0, 6, 0, 0));
	assert_false(passes("flags & 0x4", 0, 3, 0, 0));
	assert_true(passes("r < 0", 0, 0, -5, 0));
	assert_true(passes("r == -5", 0, 0, -5, 0));
	assert_false(passes("r > -1", 0, 0, -5, 0));
	assert_true(passes("duration > 1ms", 0, 0, 0, 1000001));
	assert_false(passes("duration > 1ms", 0, 0, 0, 1000000));
	/* and binds more than or */
	assert_true(passes("count == 1 or count == 2 and flags == 9", 1, 0, 0, 0));
	assert_false(passes("(count == 1 or count == 2) and flags == 9", 1, 0, 0, 0));
	assert_true(passes("not (count == 1 && flags != 0) || r == 7", 1, 0, 0, 0));
	assert_false(passes("!(count == 1)", 1, 0, 0, 0));
	assert_true(passes("count <= 3 and count != 2 and count < 9", 3, 0, 0, 0));
}

static void test_a_filter_on_the_return_waits_for_it(void **state)
{
	understood("uprobe:a:f(count=arg0) if count > 1 and arg1 == 2");
	assert_true(spec_filter_on_entry(&spec));
	understood("uprobe:a:f(count=arg0) if count > 1 and ret == 2");
	assert_false(spec_filter_on_entry(&spec));
	understood("uprobe:a:f if duration > 10us");
	assert_false(spec_filter_on_entry(&spec));
}

/* ---- mistakes ------------------------------------------------------------------------------ */

/* Each with a ^ before the byte that is wrong, and a part of what is told. */
static const struct {
	const char *text, *says;
} mistakes[] = {
	{ "^", "'' is no kind of hook (uprobe, uentry, " },
	{ "^uprob:a:f", "'uprob' is no kind of hook: did you mean 'uprobe'?" },
	{ "^kporbe:f", "did you mean 'kprobe'?" },
	{ "uprobe^", "':' is expected here: uprobe:MODULE:GLOB" },
	{ "uprobe:^", "the module is missing here: uprobe:MODULE:GLOB" },
	{ "uprobe:^:f", "the module is missing here" },
	{ "uprobe:libc.so.6^", "':' is expected after the module" },
	{ "uprobe:libc.so.6:^", "a name is missing here" },
	{ "uprobe:libc.so.6:^(arg0)", "a name is missing here" },
	{ "uprobe:a:f^:g", "one ':' too many: uprobe:MODULE:GLOB" },
	{ "uprobe:a:f^[a-z", "this '[' has no ']'" },
	{ "usdt:a:b^", "':' is expected after the provider: usdt:MODULE:PROVIDER:NAME" },
	{ "usdt:a:b:^", "the marker's name is missing here" },
	{ "kprobe:^", "a name is missing here: kprobe:[MODULE:]GLOB" },
	{ "kprobe:nvidia:a^:b", "one ':' too many" },
	{ "tracepoint:sched^", "':' is expected after the group" },
	{ "uprobe:a:f(^", "an argument is expected here" },
	{ "uprobe:a:f(arg0^", "',' or ')' is expected here" },
	{ "uprobe:a:f(arg0,^)", "an argument is expected here" },
	{ "uprobe:a:f(arg0 ^arg1)", "',' or ')' is expected here" },
	{ "uprobe:a:f(x=^arg12)", "no argument arg12: arg0 to arg11" },
	{ "uprobe:a:f(x=^arg99999999999999999999)", "no argument arg99999999999999999999" },
	{ "uprobe:a:f(x=^argument)", "'argument' is no value: arg0 to arg11, or ret" },
	{ "uprobe:a:f(x=^7)", "'7' is no value" },
	{ "uentry:a:f(x=^ret)", "uentry has no return, so no ret: use uprobe" },
	{ "kentry:f(x=^ret)", "use kprobe" },
	{ "usdt:a:b:c(^ret)", "usdt has no return" },
	{ "uretprobe:a:f(^arg0)", "arg0 is gone when the function returns" },
	{ "tracepoint:a:b(^arg0)", "a tracepoint has fields with names, not arg0" },
	{ "uprobe:a:f(x=arg0:^pt)", "'pt' is no type: did you mean 'ptr'? (i8 to i64, " },
	{ "uprobe:a:f(x=arg0:^int64)", "'int64' is no type" },
	{ "uprobe:a:f(x=arg0:^)", "'' is no type" },
	{ "uprobe:a:f(x=arg0:char^)", "char wants its length: char[16]" },
	{ "uprobe:a:f(x=arg0:char[^0])", "char[N] has 1 to 255 bytes" },
	{ "uprobe:a:f(x=arg0:char[^256])", "this number is too large: 255 is the most" },
	{ "uprobe:a:f(x=arg0:char[^])", "a number is expected here" },
	{ "uprobe:a:f(x=arg0:char[9^)", "']' is missing after the length of char" },
	{ "uprobe:a:f(x=arg0+^)", "a number is expected here: 1024 or 0x400" },
	{ "uprobe:a:f(x=arg0+^2147483648)", "this number is too large: 2147483647" },
	{ "uprobe:a:f(x=arg0+8^+8)", "one offset a read: '->' reads on from there" },
	{ "uprobe:a:f(x=arg0+8^-8)", "one offset a read" },
	{ "uprobe:a:f(x=arg0+1->2->3^->4)", "memory is read at most 3 times" },
	{ "uprobe:a:f(x=^****arg0)", "memory is read at most 3 times" },
	{ "tracepoint:a:b(x=pid^+8)", "fields of tracepoints are values" },
	{ "uprobe:a:f(x=arg0:u64@^exit)", "after '@' comes 'return'" },
	{ "uprobe:a:f(x=arg0:u64@^return)", "only memory can change until the return" },
	{ "uentry:a:f(x=*arg0:u64@^return)", "uentry has no return" },
	{ "uprobe:a:f(x=arg0, ^x=arg1)", "there is a 'x' already" },
	{ "uprobe:a:f(arg0, ^arg0:i32)", "there is a 'arg0' already: give one a name" },
	{ "uprobe:a:f(^1x=arg0)", "a name does not begin with a digit" },
	{ "uprobe:a:f(^abcdefghijklmnopqrstuvwxyz=arg0)", "this name is too long" },
	{ "uprobe:a:f(a=arg0:str, b=^arg1:str)", "a hook records one text: 'a' is one already" },
	{ "kprobe:f(a=arg0:str, b=^arg1:kstr)", "a hook records one text: 'a' is one already" },
	{ "uprobe:a:f(a=arg0:^kstr)",
	  "kstr is text of the kernel, and uprobe sees a program's: str" },
	{ "usdt:a:b:c(a=arg0:^kchar[4])",
	  "kchar is text of the kernel, and usdt sees a program's" },
	{ "kprobe:f(a=arg0:^kst)",
	  "did you mean 'kstr'? (i8 to i64, u8 to u64, hex, bytes, ptr, str, "
	  "char[N], kstr, kchar[N])" },
	{ "kprobe:f(a=arg0:kchar[^0])", "kchar[N] has 1 to 255 bytes" },
	{ "kprobe:f(a=*arg0:kstr@^user)", "kstr is text of the kernel: str" },
	{ "kprobe:f(a=arg0@^user)", "only memory is somebody's" },
	{ "kprobe:f(a=*arg0@^usr)",
	  "after '@' comes 'return': the memory is read then; or 'user'" },
	{ "uprobe:a:f(a=*arg0@^user)", "only behind arguments of the kernel's functions" },
	{ "tracepoint:a:f(a=b:str@^user)", "only behind arguments of the kernel's functions" },
	{ "uprobe:a:f(arg0,arg1,arg2,arg3,arg4,arg5,arg6,arg7,arg8,arg9,arg10,arg11,^x=arg0)",
	  "a hook has at most 12 arguments" },
	{ "uprobe:a:f(x=arg0*^sizes(arg1))", "no table is called 'sizes'" },
	{ "uprobe:a:f ^whatever", "'(', 'as', 'if' or the end is expected here" },
	{ "uprobe:a:f(arg0) ^(arg1)", "'(', 'as', 'if' or the end is expected here" },
	{ "uprobe:a:f as ^", "after 'as' comes a name" },
	{ "uprobe:a:f as ^!", "after 'as' comes a name" },
	{ "uprobe:a:f as x as ^y", "it has a name already: 'x'" },
	{ "uprobe:a:f as ^a2345678901234567890123456789012", "this name is too long: at most 31" },
	{ "uprobe:a:f if ^", "a comparison is expected here: count > 1024" },
	{ "uprobe:a:f(count=arg0) if ^cuont > 1", "no argument is called 'cuont': did you mean "
	                                          "'count'?" },
	{ "uprobe:a:f if ^bytes > 1", "'bytes' is no value" },
	{ "uprobe:a:f if arg0^", "a comparison is expected here: == != < <= > >= &" },
	{ "uprobe:a:f if arg0 ^= 1", "'=' gives a name; '==' compares" },
	{ "uprobe:a:f if arg0 ^=> 1", "'=' gives a name" },
	{ "uprobe:a:f if arg0 > ^x", "a number is expected here" },
	{ "uprobe:a:f if arg0 == ^\"x\"", "only numbers are compared, not text" },
	{ "uprobe:a:f(s=arg0:str) if ^s == 1", "'s' is text: only numbers are compared" },
	{ "uprobe:a:f if arg0 > ^-1", "'arg0' is never below 0: its type has no sign" },
	{ "uprobe:a:f if arg0 > 1^ms", "'ms' is no unit of a number: KiB, MiB or GiB" },
	{ "uprobe:a:f if duration > ^", "a number is expected here" },
	{ "uprobe:a:f if duration > 5^", "a duration has a unit: ns, us, ms or s" },
	{ "uprobe:a:f if duration > 5^KiB", "'KiB' is no unit of time" },
	{ "uentry:a:f if ^duration > 5ms", "uentry is a moment: it has no duration" },
	{ "uprobe:a:f if arg0 > ^18446744073709551616", "this number is too large" },
	{ "uprobe:a:f if arg0 > 18446744073709551615^GiB", "this number is too large" },
	{ "uprobe:a:f(x=arg0:i64) if x > ^9223372036854775808", "this number is too large" },
	{ "uprobe:a:f if (arg0 > 1^", "')' is missing here" },
	{ "uprobe:a:f if arg0 > 1 and^", "a comparison is expected here" },
	{ "uprobe:a:f if arg0 > 1 ^xor arg1 > 1", "'and', 'or', 'as' or the end" },
	{ "uprobe:a:f if arg0 > 1 ^if arg1 > 1", "there is a filter already" },
	{ "uprobe:a:f if ((((((((^(arg0 > 1", "brackets go 8 deep at most" },
	{ "uprobe:a\1b^:f", "" },
};

static void check_mistake(const char *marked, const char *says)
{
	char text[512];
	size_t at = strcspn(marked, "^");

	snprintf(text, sizeof(text), "%.*s%s", (int)at, marked, marked + at + 1);
	spec_free(&spec);
	if (spec_read(text, NULL, &spec, &mistake))
		fail_msg("no mistake: %s", text);
	if (!strstr(mistake.says, says))
		fail_msg("%s\nis told as '%s'\nand not '%s'", text, mistake.says, says);
	if (*says && mistake.at != at &&
	    text[strspn(text + mistake.at, " ") + mistake.at] != text[at])
		fail_msg("%s\nis wrong at %zu, and not at %zu", text, mistake.at, at);
}

static void test_what_needs_a_return(void **state)
{
	understood("uprobe:l:f(n=arg0) if n > 1");
	assert_false(spec_needs_return(&spec));
	understood("uretprobe:l:f");
	assert_true(spec_needs_return(&spec));
	understood("uprobe:l:f(ret:i32)");
	assert_true(spec_needs_return(&spec));
	understood("kprobe:f(size=*arg1:u64@return)");
	assert_true(spec_needs_return(&spec));
	understood("kprobe:f if duration > 1ms");
	assert_true(spec_needs_return(&spec));
}

static void test_each_mistake_is_told_with_its_place(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++)
		check_mistake(mistakes[i].text, mistakes[i].says);
}

static void test_texts_without_end_are_told(void **state)
{
	static char text[SPEC_TEXT_MAX + 1000];

	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "uprobe:", 7);
	spec_free(&spec);
	assert_false(spec_read(text, NULL, &spec, &mistake));
	assert_non_null(strstr(mistake.says, "at most 4095 bytes"));
	text[300] = '\0';
	assert_false(spec_read(text, NULL, &spec, &mistake));
	assert_non_null(strstr(mistake.says, "the module is too long: at most 255 bytes"));
}

static void test_a_filter_has_an_end(void **state)
{
	static char text[SPEC_TEXT_MAX];
	size_t at = snprintf(text, sizeof(text), "uprobe:a:f if arg0 == 0");

	for (int i = 0; i < 16; i++)
		at += snprintf(text + at, sizeof(text) - at, " or arg0 == %d", i);
	spec_free(&spec);
	assert_false(spec_read(text, NULL, &spec, &mistake));
	assert_non_null(strstr(mistake.says, "this filter is too long"));
}

/* ---- files --------------------------------------------------------------------------------- */

static const char *wrong_of(const char *text)
{
	static struct buf wrong;
	struct hook_list list = { .driver = 570 };

	buf_reset(&wrong);
	buf_puts(&wrong, "");
	hook_list_add_text(&list, "x.hooks", text, &wrong);
	hook_list_free(&list);
	return wrong.data;
}

static void test_a_file_has_remarks_tables_and_versions(void **state)
{
	struct hook_list list = { .driver = 570 };
	struct buf wrong = { 0 };

	assert_int_equal(hook_list_add_text(&list, "x.hooks",
	                                    "# remark\n\n"
	                                    "table sizes = 1 1 4 8 0x10\n"
	                                    "uprobe:a:f(n=arg0*sizes(arg1):bytes) # remark\n"
	                                    "driver 515-544\n"
	                                    "kprobe:nvidia:old\n"
	                                    "driver 545-\n"
	                                    "?kprobe:nvidia:new\r\n"
	                                    "driver 570\n"
	                                    "kprobe:nvidia:this\n"
	                                    "driver any\n"
	                                    "kprobe:nvidia:both",
	                                    &wrong),
	                 0);
	assert_int_equal(list.n, 4);
	assert_int_equal(list.spec[0]->line, 4);
	assert_int_equal(spec_value_times(&list.spec[0]->value[0], 10, 2), 40);
	assert_int_equal(spec_value_times(&list.spec[0]->value[0], 10, 5), 0);
	assert_int_equal(list.spec[0]->value[0].factor, 1);
	assert_true(list.spec[0]->value[1].hidden);
	assert_string_equal(list.spec[1]->glob, "new");
	assert_true(list.spec[1]->optional);
	assert_string_equal(list.spec[2]->glob, "this");
	assert_string_equal(list.spec[3]->glob, "both");
	hook_list_free(&list);
	buf_free(&wrong);
}

/* Of a file that cuscope has, as another machine reads it. */
static unsigned rank_of_nccl(const char *machine)
{
	struct hook_list list = { .machine = machine };
	struct buf wrong = { 0 };
	unsigned found = 0, position = 0;

	assert_int_equal(hook_list_add_file(&list, "nccl", &wrong), 0);
	for (size_t i = 0; i < list.n; i++) {
		if (strcmp(list.spec[i]->glob, "ncclCommInitRank"))
			continue;
		assert_string_equal(list.spec[i]->value[1].name, "rank");
		position = list.spec[i]->value[1].index;
		found++;
	}
	assert_int_equal(found, 1);
	hook_list_free(&list);
	buf_free(&wrong);
	return position;
}

static void test_lines_of_a_file_are_for_one_machine(void **state)
{
	assert_int_equal(rank_of_nccl("x86_64"), 2);
	assert_int_equal(rank_of_nccl("aarch64"), 3);
}

/* There are thousands of calls a second: those too short for a launch are to cost no record. */
static void test_operators_of_pytorch_have_to_take_some_time(void **state)
{
	struct hook_list list = { 0 };
	struct buf wrong = { 0 };

	assert_int_equal(hook_list_add_file(&list, "pytorch", &wrong), 0);
	assert_in_range(list.n, 50, 100);
	for (size_t i = 0; i < list.n; i++) {
		const struct filter_step *step = &list.spec[i]->filter[0];

		assert_int_equal(list.spec[i]->n_filter, 1);
		assert_int_equal(step->value, FILTER_DURATION);
		assert_true(step->op == FILTER_GT && step->with >= 5000);
	}
	hook_list_free(&list);
	buf_free(&wrong);
}

static void test_a_mistake_shows_its_line_with_a_caret(void **state)
{
	assert_string_equal(wrong_of("uprobe:a:f\nuprobe:libnccl.so:ncclSend(peer=arg3:i33)\n"),
	                    "x.hooks, line 2: 'i33' is no type: did you mean 'i32'? (i8 to i64, u8 "
	                    "to u64, hex, bytes, ptr, str, char[N])\n"
	                    "  uprobe:libnccl.so:ncclSend(peer=arg3:i33)\n"
	                    "                                       ^");
}

static void test_a_hostile_text_is_shown_harmless(void **state)
{
	const char *wrong = wrong_of("uprobe:a:\033[2Jf(x=arg0)\n");

	assert_null(strchr(wrong, '\033'));
	assert_non_null(strstr(wrong, "\\x1b"));
}

static void test_mistakes_of_files(void **state)
{
	static const char *const of_files[][2] = {
		{ "table = 1 2", "a table has a name" },
		{ "table x 1 2", "'=' is expected here" },
		{ "table x =", "a number is expected here" },
		{ "table x = 1 y", "a number is expected here" },
		{ "table x = 4294967296", "this number is too large" },
		{ "table x = 1\ntable x = 2", "line 2: there is a table 'x' already" },
		{ "driver", "versions of the driver are expected here" },
		{ "driver x", "versions of the driver are expected here" },
		{ "driver 600-500", "the first version comes first" },
		{ "driver 600-700x", "the end of the line is expected here" },
		{ "driver any more", "the end of the line is expected here" },
		{ "machine", "'' is no machine" },
		{ "machine arm64", "'arm64' is no machine: did you mean 'aarch64'?" },
		{ "machine x86_64 aarch64", "the end of the line is expected here" },
		{ "table sizes = 1\nuprobe:a:f(n=arg0*szes(arg1))", "did you mean 'sizes'?" },
		{ "table t = 1\nuprobe:a:f(n=arg0*t)", "'(' is expected here: t(arg3)" },
		{ "table t = 1\nuprobe:a:f(n=arg0*t(arg1)) if n > 1", "'n' is a product" },
		{ "table t = 1\nuprobe:a:f(n=arg0*t(arg1):str)", "text is not multiplied" },
		{ "?", "'' is no kind of hook" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(of_files); i++) {
		if (!strstr(wrong_of(of_files[i][0]), of_files[i][1]))
			fail_msg("%s\nis told as '%s'\nand not '%s'", of_files[i][0],
			         wrong_of(of_files[i][0]), of_files[i][1]);
	}
}

static void test_there_is_a_most_of_hooks(void **state)
{
	struct hook_list list = { 0 };
	struct buf wrong = { 0 };

	for (int i = 0; i < HOOK_LIST_MAX; i++)
		assert_int_equal(hook_list_add(&list, "kprobe:f", &wrong), 0);
	assert_int_not_equal(hook_list_add(&list, "kprobe:f", &wrong), 0);
	assert_non_null(strstr(wrong.data, "there are more than 1024 hooks"));
	hook_list_free(&list);
	buf_free(&wrong);
}

static void test_each_file_that_cuscope_has_is_right(void **state)
{
	struct buf wrong = { 0 };

	for (size_t i = 0; hook_file_name(i); i++) {
		struct hook_list list = { 0 };

		if (hook_list_add_file(&list, hook_file_name(i), &wrong))
			fail_msg("%s", wrong.data);
		assert_true(list.n > 0);
		hook_list_free(&list);
	}
	struct hook_list list = { 0 };

	assert_int_not_equal(hook_list_add_file(&list, "ncl", &wrong), 0);
	assert_non_null(strstr(wrong.data, "cuscope has no hooks called 'ncl': did you mean "
	                                   "'nccl'?"));
	hook_list_free(&list);
	buf_free(&wrong);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_function_of_a_library_with_arguments),
		cmocka_unit_test(test_each_kind_of_place),
		cmocka_unit_test(test_memory_is_read_in_steps),
		cmocka_unit_test(test_filters_compare_and_join),
		cmocka_unit_test(test_a_filter_on_the_return_waits_for_it),
		cmocka_unit_test(test_what_needs_a_return),
		cmocka_unit_test(test_each_mistake_is_told_with_its_place),
		cmocka_unit_test(test_texts_without_end_are_told),
		cmocka_unit_test(test_a_filter_has_an_end),
		cmocka_unit_test(test_a_file_has_remarks_tables_and_versions),
		cmocka_unit_test(test_lines_of_a_file_are_for_one_machine),
		cmocka_unit_test(test_operators_of_pytorch_have_to_take_some_time),
		cmocka_unit_test(test_a_mistake_shows_its_line_with_a_caret),
		cmocka_unit_test(test_a_hostile_text_is_shown_harmless),
		cmocka_unit_test(test_mistakes_of_files),
		cmocka_unit_test(test_there_is_a_most_of_hooks),
		cmocka_unit_test(test_each_file_that_cuscope_has_is_right),
	};

	return cmocka_run_group_tests(tests, NULL, free_spec);
}
