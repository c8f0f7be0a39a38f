// SPDX-License-Identifier: MIT
/* What is written of a profile as text: folded stacks, and the heaviest for a terminal. */
#include "unit.h"

#include <errno.h>
#include <time.h>

#include "profile/profile_write.h"
#include "profile/folded.h"
#include "profile/words.h"
#include "profile_scene.h"

static char *written;
static size_t written_bytes;

static const char *write_as(const struct profile *profile, enum profile_format format,
                            const struct profile_info *info)
{
	struct err err = { 0 };
	FILE *out;

	free(written);
	out = open_memstream(&written, &written_bytes);
	assert_int_equal(profile_write(profile, info, format, out, "the profile", &err), 0);
	fclose(out);
	return written;
}

static const char *heaviest(const struct profile *profile, size_t stacks)
{
	struct table_options table = { .width = 80 };
	struct err err = { 0 };

	free(written);
	table.out = open_memstream(&written, &written_bytes);
	assert_int_equal(profile_heaviest(profile, &scene_info, stacks, &table, &err), 0);
	fclose(table.out);
	return written;
}

#define TO_ADDMM                                                                                   \
	"train (train.py:88);Net.forward (model.py:12);at::addmm(at::Tensor const&, "              \
	"at::Tensor const&)"

static void test_folded_has_both_kinds_of_time_in_us(void **state)
{
	struct profile *profile = profile_new(NULL);

	scene_fill(profile);
	assert_string_equal(
		write_as(profile, PROFILE_FOLDED, &scene_info),
		"train (train.py:88);Net.forward (model.py:12) 40000\n" TO_ADDMM
		";cudaLaunchKernel;[libcuda.so.1];__x64_sys_ioctl;nvidia_ioctl 25000\n" TO_ADDMM
		";cudaLaunchKernel;[libcuda.so.1];__x64_sys_ioctl;nvidia_ioctl;[off_CPU] "
		"40000\n" TO_ADDMM
		";cudaLaunchKernel;[GPU_Kernel]void gemm<float, 128>(float const*, int) "
		"50000\n" TO_ADDMM ";cudaLaunchKernel;[GPU_Copy]HtoD 6000\n" TO_ADDMM
		";check 20000\n"
		"[libcuda.so.1] 10000\n"
		"Builtin:ArrayMap 5000\n"
		"[stack not known];[GPU_Set]Device 4000\n");
	profile_free(profile);
}

static void test_kinds_of_time_can_be_chosen(void **state)
{
	struct profile *profile = profile_new(NULL);
	struct profile_info info = { .kinds = 1u << WEIGHT_GPU };

	scene_fill(profile);
	assert_string_equal(
		write_as(profile, PROFILE_FOLDED, &info),
		TO_ADDMM ";cudaLaunchKernel;[GPU_Kernel]void gemm<float, 128>(float const*, int) "
			 "50000\n" TO_ADDMM ";cudaLaunchKernel;[GPU_Copy]HtoD 6000\n"
			 "[stack not known];[GPU_Set]Device 4000\n");
	profile_free(profile);
}

static void test_processes_and_threads_are_the_outermost_frames(void **state)
{
	struct profile *profile = profile_new(&(struct profile_options){ .per_thread = true });

	scene_add(profile, WEIGHT_CPU, &scene_in_forward, 1, NULL);
	assert_string_equal(write_as(profile, PROFILE_FOLDED, &scene_info),
	                    "python3 (4242);worker (4243);train (train.py:88);Net.forward "
	                    "(model.py:12) 1000\n");
	profile_free(profile);
}

/* Two lines of Net.forward, with the interpreter's own functions around them. */
static void add_two_lines(struct profile *profile)
{
	static const struct stack_frame line_20 = { 20,   FRAME_PYTHON,    false, "Net.forward",
		                                    NULL, "/app/model.py", 20,    10 };
	static const struct stack_frame call = { 21, FRAME_NATIVE, false, "PyObject_Vectorcall",
		                                 "libpython3.11.so.1.0" };
	static const struct stack_frame own = { 22, FRAME_NATIVE, false, "call", "python3-rpc" };
	SCENE_STACK(first, 20, STACK_WHOLE, &scene_forward, &own, &call, &scene_train,
	            &scene_start);
	SCENE_STACK(second, 21, STACK_WHOLE, &call, &line_20, &own, &call, &scene_train,
	            &scene_start);

	scene_add(profile, WEIGHT_CPU, &first, 1, NULL);
	scene_add(profile, WEIGHT_CPU, &second, 2, NULL);
}

static void test_lines_of_python_are_frames_of_their_own(void **state)
{
	struct profile *profile = profile_new(NULL);

	add_two_lines(profile);
	assert_string_equal(
		write_as(profile, PROFILE_FOLDED, &scene_info),
		"train (train.py:88);call;Net.forward (model.py:20);PyObject_Vectorcall 2000\n"
		"train (train.py:88);call;Net.forward (model.py:12) 1000\n");
	profile_free(profile);
	profile = profile_new(&(struct profile_options){ .functions = true });
	add_two_lines(profile);
	assert_string_equal(write_as(profile, PROFILE_FOLDED, &scene_info),
	                    "train (train.py);call;Net.forward (model.py) 1000\n"
	                    "train (train.py);call;Net.forward (model.py);PyObject_Vectorcall "
	                    "2000\n");
	profile_free(profile);
}

static void test_what_runs_python_is_there_where_it_is_asked_for(void **state)
{
	struct profile *profile = profile_new(&(struct profile_options){ .interpreter = true });

	add_two_lines(profile);
	assert_non_null(strstr(write_as(profile, PROFILE_FOLDED, &scene_info),
	                       "_start;train (train.py:88);PyObject_Vectorcall;call;Net.forward "
	                       "(model.py:12) 1000\n"));
	profile_free(profile);
}

/* A line of the source is a frame, and not the one at which its function begins. */
static void test_speedscope_has_the_lines_that_ran(void **state)
{
	static const char *const wanted[] = { "/app/model.py\", \"line\": 12 ",
		                              "/app/model.py\", \"line\": 20 ",
		                              "Addmm.cpp\", \"line\": 301 " };
	struct profile *profile = profile_new(NULL);
	const char *text;

	add_two_lines(profile);
	scene_add(profile, WEIGHT_CPU, &scene_in_launch, 1, NULL);
	text = write_as(profile, PROFILE_SPEEDSCOPE, &scene_info);
	for (char *at = written; *at; at++) /* a blank for all between two members */
		if (*at == '\n')
			memmove(at + 1, at + 1 + strspn(at + 1, " "),
			        strlen(at + 1 + strspn(at + 1, " ")) + 1);
	for (char *at = written; *at; at++)
		*at = *at == '\n' ? ' ' : *at;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		assert_non_null(strstr(text, wanted[i]));
	assert_null(strstr(text, "\"line\": 10 "));
	assert_null(strstr(text, "\"line\": 290 "));
	profile_free(profile);
}

static void test_names_cannot_break_a_line_or_a_frame(void **state)
{
	const struct stack_frame frames[] = {
		{ 0, FRAME_NATIVE, false, "a;b\nc\033[31m;" },
		{ 1, FRAME_NATIVE, false, "\xff\xe2\x80\xae" },
		{ 2, FRAME_NATIVE, false, "" },
		{ 3, FRAME_NATIVE, false, NULL, NULL },
		{ 4, FRAME_NATIVE, false, NULL, "[vdso]" },
	};
	const struct stack_frame *const outwards[] = { &frames[0], &frames[1], &frames[2],
		                                       &frames[3], &frames[4] };
	const struct stack stack = { .n_frames = 5, .frames = outwards };
	struct profile *profile = profile_new(NULL);

	scene_add(profile, WEIGHT_GPU, &stack, 1, "");
	assert_string_equal(
		write_as(profile, PROFILE_FOLDED, &scene_info),
		"[vdso];[unknown];[unknown];\\xff\\xe2\\x80\\xae;a\\x3bb\\x0ac\\x1b[31m\\x3b;- "
		"1000\n");
	profile_free(profile);
}

static void test_a_long_name_is_cut(void **state)
{
	struct profile *profile = profile_new(NULL);
	char *name = malloc(65537);

	memset(name, 'x', 65536);
	name[65536] = '\0';
	scene_add(profile, WEIGHT_GPU, &scene_cut, 1, name);
	write_as(profile, PROFILE_FOLDED, &scene_info);
	assert_in_range(written_bytes, 4096, 4200);
	assert_non_null(strstr(written, "xxx... 1000\n"));
	free(name);
	profile_free(profile);
}

static void test_an_empty_profile_is_an_empty_file(void **state)
{
	struct profile *profile = profile_new(NULL);

	assert_string_equal(write_as(profile, PROFILE_FOLDED, &scene_info), "");
	assert_string_equal(heaviest(profile, 0),
	                    "Profile of python3 train.py: no samples\n"
	                    "1 process, 200.000 ms at 99 samples a second, on gpu1\n"
	                    "  Completeness: no stacks.\n");
	profile_free(profile);
}

static void test_a_stack_of_ten_thousand_frames_is_whole(void **state)
{
	static struct stack_frame frames[10000];
	static const struct stack_frame *outwards[10000];
	static char names[10000][8];
	const struct stack stack = { .n_frames = 10000, .frames = outwards };
	struct profile *profile = profile_new(NULL);
	size_t semicolons = 0;

	for (int i = 0; i < 10000; i++) {
		snprintf(names[i], sizeof(names[i]), "f%d", i);
		frames[i].function = names[i];
		outwards[i] = &frames[i];
	}
	scene_add(profile, WEIGHT_CPU, &stack, 1, NULL);
	for (const char *at = write_as(profile, PROFILE_FOLDED, &scene_info); *at; at++)
		semicolons += *at == ';';
	assert_int_equal(semicolons, 9999);
	heaviest(profile, 0);
	profile_free(profile);
}

static void test_the_heaviest_stacks_fit_a_terminal(void **state)
{
	struct profile *profile = profile_new(NULL);

	scene_fill(profile);
	assert_string_equal(
		heaviest(profile, 4),
		"Profile of python3 train.py: 100.000 ms on CPUs, 40.000 ms blocked, 60.000 ms on\n"
		"  GPUs\n"
		"1 process, 200.000 ms at 99 samples a second, on gpu1\n"
		"   Share       Time  Stack, innermost frame first\n"
		"  25.0 %  50.000 ms  [GPU_Kernel]void gemm<float, 128>(float const*, int)\n"
		"                       < cudaLaunchKernel < at::addmm\n"
		"                       < Net.forward (model.py:12) < train (train.py:88)\n"
		"  20.0 %  40.000 ms  Net.forward (model.py:12)\n"
		"                       < train (train.py:88)\n"
		"  20.0 %  40.000 ms  blocked\n"
		"                       < __x64_sys_ioctl < cudaLaunchKernel < at::addmm\n"
		"                       < Net.forward (model.py:12) < train (train.py:88)\n"
		"  12.5 %  25.000 ms  nvidia_ioctl\n"
		"                       < __x64_sys_ioctl < cudaLaunchKernel < at::addmm\n"
		"                       < Net.forward (model.py:12) < train (train.py:88)\n"
		"  Completeness: 77.8 % of 9 stacks whole; 11.1 % end in a file without unwind\n"
		"    tables (mostly libcuda.so.1); 11.1 % end at a frame that led nowhere; of\n"
		"    10.0 % of all samples the stack is not known.\n");
	for (const char *line = written; *line; line = strchr(line, '\n') + 1)
		assert_in_range(strchr(line, '\n') - line, 1, 80);
	profile_free(profile);
}

static const struct stack_frame futex = { 20, FRAME_KERNEL_MODE, false, "futex_do_wait", "kernel" };
static const struct stack_frame sys_futex = { 21, FRAME_KERNEL_MODE, false, "__x64_sys_futex",
	                                      "kernel" };
static const struct stack_frame syscall_64 = { 22, FRAME_KERNEL_MODE, false, "do_syscall_64",
	                                       "kernel" };
static const struct stack_frame entry = { 23, FRAME_KERNEL_MODE, false,
	                                  "entry_SYSCALL_64_after_hwframe", "kernel" };
static const struct stack_frame wait_inner = { 24, FRAME_NATIVE, false, "futex_wait", "libc.so.6" };
static const struct stack_frame wait_outer = { 25, FRAME_NATIVE, false, "cond_wait", "libc.so.6" };

static const struct stack_frame sys_call = { 26, FRAME_KERNEL_MODE, false, "x64_sys_call",
	                                     "kernel" };

SCENE_STACK(in_wait, 7, STACK_WHOLE, &futex, &sys_futex, &sys_call, &syscall_64, &entry,
            &wait_inner, &wait_outer, &scene_train);

static const char *blocked_as(const char *how)
{
	const struct process process = { 0, 4242, "python3" };
	struct profile *profile = profile_new(NULL);

	profile_add(profile, &(struct profile_sample){ .kind = WEIGHT_OFF_CPU,
	                                               .ns = 2000000,
	                                               .stack = &in_wait,
	                                               .blocked = how,
	                                               .process = &process });
	heaviest(profile, 1);
	profile_free(profile);
	return written;
}

/* Neither how the kernel is entered nor all of the C library: the line that waits has to fit. */
static void test_a_blocked_stack_says_who_ended_it_and_leads_to_the_line(void **state)
{
	static const char to_line[] =
		"\n                       < __x64_sys_futex < futex_wait < train "
		"(train.py:88)\n";
	static const struct {
		const char *how, *told;
	} cases[] = {
		{ "[woken by nccl]", "  blocked, woken by nccl" },
		{ "[still blocked at the end]", "  still blocked at the end" },
		{ "[blocked since before the begin]", "  blocked since before the begin" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *at = strstr(blocked_as(cases[i].how), cases[i].told);

		assert_non_null(at);
		assert_memory_equal(at + strlen(cases[i].told), to_line, sizeof(to_line) - 1);
	}
}

static void test_the_end_of_a_long_kernel_name_gives_way_not_what_it_is(void **state)
{
	struct profile *profile = profile_new(NULL);

	scene_add(
		profile, WEIGHT_GPU, &scene_cut, 1,
		"[GPU_Kernel]void a_very_long_namespace::another_very_long_one::gemm_kernel_128x64"
		"<cutlass::half_t, cutlass::layout::RowMajor>(float*)");
	assert_non_null(
		strstr(heaviest(profile, 0), "  [GPU_Kernel]gemm_kernel_128x64<...>(...)\n"));
	profile_free(profile);
}

static void test_of_a_python_function_the_file_gives_way_first(void **state)
{
	static const struct stack_frame frame = { 0,     FRAME_PYTHON,
		                                  false, "ScaledAttention.forward",
		                                  NULL,  "a_very_long_file_name.py" };
	static const struct stack_frame frozen = { 1,     FRAME_PYTHON,
		                                   false, "_find_and_load_unlocked",
		                                   NULL,  "<frozen importlib._bootstrap>",
		                                   1149 };
	SCENE_STACK(stack, 1, STACK_WHOLE, &scene_forward, &frame);
	SCENE_STACK(of_no_file, 2, STACK_WHOLE, &scene_forward, &frozen);
	struct profile *profile = profile_new(NULL);

	scene_add(profile, WEIGHT_CPU, &stack, 1, NULL);
	assert_non_null(strstr(heaviest(profile, 0), " < ScaledAttention.forward\n"));
	profile_free(profile);
	profile = profile_new(NULL);
	scene_add(profile, WEIGHT_CPU, &of_no_file, 1, NULL);
	assert_non_null(strstr(heaviest(profile, 0), " < _find_and_load_unlocked\n"));
	profile_free(profile);
}

static void test_two_profiles_are_compared_by_the_path_of_names(void **state)
{
	struct profile *before = profile_new(NULL), *after = profile_new(NULL);
	const struct profile_pair pair = { before, after, &scene_info, &scene_info };
	struct table_options table = { .width = 80 };
	struct err err = { 0 };
	FILE *out;

	scene_fill(before);
	scene_fill_faster(after);
	free(written);
	out = open_memstream(&written, &written_bytes);
	assert_int_equal(profile_diff_write(&pair, PROFILE_FOLDED, out, "it", &err), 0);
	fclose(out);
	assert_non_null(strstr(written, ";cudaLaunchKernel;[GPU_Kernel]relu(float*) 0 20000\n"));
	assert_non_null(strstr(written, TO_ADDMM ";check 20000 0\n"));
	assert_non_null(strstr(written, "(model.py:12) 40000 40000\n"));
	assert_int_equal(profile_diff_write(&pair, PROFILE_PPROF, stdout, "it", &err), -EINVAL);
	assert_non_null(strstr(err.text, "not as .pb.gz"));
	free(written);
	table.out = open_memstream(&written, &written_bytes);
	assert_int_equal(profile_diff_functions(&pair, 5, &table, &err), 0);
	fclose(table.out);
	assert_string_equal(
		written,
		"Functions whose share of all time changed most\n"
		"  Before   After  Change (points)  Time after  Function\n"
		"   0.0 %  12.5 %            +12.5   20.000 ms  [GPU_Kernel]relu(float*)\n"
		"  10.0 %   0.0 %            -10.0        0 ns  check\n"
		"  25.0 %  15.6 %             -9.4   25.000 ms  [GPU_Kernel]void gemm<...>(...)\n"
		"  20.0 %  25.0 %             +5.0   40.000 ms  Net.forward (model.py:12)\n"
		"  20.0 %  25.0 %             +5.0   40.000 ms  [off_CPU]\n"
		"  Before: 77.8 % of 9 stacks whole; 11.1 % end in a file without unwind tables\n"
		"    (mostly libcuda.so.1); 11.1 % end at a frame that led nowhere; of 10.0 % of\n"
		"    all samples the stack is not known.\n"
		"  After: 83.3 % of 6 stacks whole; 16.7 % end in a file without unwind tables\n"
		"    (mostly libcuda.so.1).\n");
	profile_free(before);
	profile_free(after);
}

static int read_text(struct profile *profile, const char *text, struct err *err)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	int rc = profile_read_folded(profile, in, "old.folded", err);

	fclose(in);
	return rc;
}

static void test_folded_stacks_are_read_back_as_they_were(void **state)
{
	struct profile *profile = profile_new(&(struct profile_options){ .functions = true });
	struct profile *again = profile_new(NULL);
	struct profile_sums sums;
	struct err err = { 0 };
	struct buf text = { 0 };
	char *folded;

	scene_fill(profile);
	scene_add(profile, WEIGHT_GPU, &scene_cut, 1, "[GPU_Kernel]a;b;c\\x3");
	folded = strdup(write_as(profile, PROFILE_FOLDED, &scene_info));
	assert_int_equal(read_text(again, folded, &err), 0);
	assert_string_equal(write_as(again, PROFILE_FOLDED, &scene_info), folded);
	profile_total(again, &sums);
	assert_int_equal(sums.ns[WEIGHT_CPU], 100 * MS);
	assert_int_equal(sums.ns[WEIGHT_OFF_CPU], 40 * MS);
	assert_int_equal(sums.ns[WEIGHT_GPU], 61 * MS);
	profile_completeness(again, &text);
	assert_string_equal(text.data,
	                    "how whole the stacks are is not known: they are from a file");
	buf_free(&text);
	free(folded);
	profile_free(profile);
	profile_free(again);
}

static void test_hooked_calls_have_a_column_of_their_number(void **state)
{
	struct profile *profile = profile_new(NULL), *again = profile_new(NULL);
	struct profile_sums sums;
	struct err err = { 0 };
	struct buf text = { 0 };
	char *folded;

	scene_fill(profile);
	words_add_title(profile, &scene_info, &text);
	assert_null(strstr(text.data, "hooked"));
	profile_free(profile);
	profile = profile_new(NULL);
	for (int i = 0; i < 7; i++)
		scene_add(profile, WEIGHT_HOOK, &scene_cut, 3, PROFILE_HOOK "nccl.all");
	buf_reset(&text);
	words_add_title(profile, &scene_info, &text);
	assert_non_null(strstr(text.data, ": 21.000 ms in hooked calls"));
	folded = strdup(write_as(profile, PROFILE_FOLDED, &scene_info));
	assert_non_null(strstr(folded, ";[hook]nccl.all 21000\n"));
	assert_int_equal(read_text(again, folded, &err), 0);
	profile_total(again, &sums);
	assert_int_equal(sums.ns[WEIGHT_HOOK], 21 * MS);
	assert_int_equal(sums.ns[WEIGHT_CPU], 0);
	assert_non_null(strstr(write_as(profile, PROFILE_SPEEDSCOPE, &scene_info), "hooked calls"));
	assert_non_null(strstr(heaviest(profile, 1),
	                       "    Share       Time  Calls  Stack, innermost frame first\n"
	                       "  100.0 %  21.000 ms      7  [hook]nccl.all\n"));
	buf_free(&text);
	free(folded);
	profile_free(profile);
	profile_free(again);
}

static void test_what_is_no_folded_file_is_refused_by_its_line(void **state)
{
	static const char *const bad[] = { "main;step\n", "main 5\nmain\n",
		                           "main 5x",     "main -5",
		                           " 5",          "main 99999999999999999999999",
		                           "{ \"a\": 1 }" };
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct profile *profile = profile_new(NULL);

		assert_int_equal(read_text(profile, bad[i], &err), -EBADMSG);
		assert_non_null(strstr(err.text, i == 1 ? "line 2 does not end with a number"
		                                        : "line 1 does not end with a number"));
		profile_free(profile);
	}
}

static void test_lines_of_other_tools_are_read(void **state)
{
	struct profile *profile = profile_new(NULL);
	struct err err = { 0 };

	assert_int_equal(
		read_text(profile, "\r\nmain;std::vector<int, a>::f(int) 3\r\n\nmain 4", &err), 0);
	assert_string_equal(write_as(profile, PROFILE_FOLDED, &scene_info),
	                    "main 4\nmain;std::vector<int, a>::f(int) 3\n");
	profile_free(profile);
}

static clock_t time_to_read(size_t bytes, size_t line)
{
	struct profile *profile = profile_new(NULL);
	char *text = calloc(bytes + 1, 1);
	struct err err;
	clock_t begin;

	memset(text, 'f', bytes);
	for (size_t end = line; end <= bytes; end += line)
		memcpy(text + end - 3, " 1\n", 3);
	begin = clock();
	assert_int_equal(read_text(profile, text, &err), 0);
	begin = clock() - begin;
	free(text);
	profile_free(profile);
	return begin;
}

/* Each byte is looked at for the end of a line once, not with each read. */
static void test_a_long_line_takes_no_longer_than_many(void **state)
{
	assert_in_range(time_to_read(48 << 20, 48 << 20), 0,
	                5 * time_to_read(48 << 20, 1 << 20) + CLOCKS_PER_SEC / 5);
}

static void test_a_profile_compared_with_itself_has_no_changes(void **state)
{
	struct profile *same = profile_new(NULL), *empty = profile_new(NULL);
	struct profile_pair pair = { same, same, &scene_info, &scene_info };
	struct table_options table = { .width = 80 };
	struct err err = { 0 };

	scene_fill(same);
	for (int i = 0; i < 2; i++) {
		free(written);
		table.out = open_memstream(&written, &written_bytes);
		assert_int_equal(profile_diff_functions(&pair, 0, &table, &err), 0);
		fclose(table.out);
		assert_int_equal(!strstr(written, "No function's share changed"), i);
		pair.after = empty;
	}
	profile_free(same);
	profile_free(empty);
}

static void test_a_full_disk_is_told_in_every_format(void **state)
{
	struct profile *profile = profile_new(NULL);

	scene_fill(profile);
	for (unsigned format = 0; format < PROFILE_FORMATS; format++) {
		FILE *out = fopen("/dev/full", "w");
		struct err err = { 0 };

		assert_int_equal(
			profile_write(profile, &scene_info, format, out, "the profile", &err),
			-ENOSPC);
		assert_non_null(strstr(err.text, "cannot write the profile"));
		fclose(out);
	}
	profile_free(profile);
}

static void test_endings_choose_the_format(void **state)
{
	assert_int_equal(profile_format_of("a.folded"), PROFILE_FOLDED);
	assert_int_equal(profile_format_of("a.folded.svg"), PROFILE_SVG);
	assert_int_equal(profile_format_of("a.html"), PROFILE_HTML);
	assert_int_equal(profile_format_of("a.pb.gz"), PROFILE_PPROF);
	assert_int_equal(profile_format_of("a.speedscope.json"), PROFILE_SPEEDSCOPE);
	assert_int_equal(profile_format_of("a.json"), PROFILE_FORMATS);
	assert_int_equal(profile_format_of(".folded"), PROFILE_FORMATS);
	assert_int_equal(profile_format_of("folded"), PROFILE_FORMATS);
	assert_int_equal(profile_format_of("a.txt"), PROFILE_FORMATS);
}

static int free_written(void **state)
{
	free(written);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded_has_both_kinds_of_time_in_us),
		cmocka_unit_test(test_kinds_of_time_can_be_chosen),
		cmocka_unit_test(test_processes_and_threads_are_the_outermost_frames),
		cmocka_unit_test(test_lines_of_python_are_frames_of_their_own),
		cmocka_unit_test(test_what_runs_python_is_there_where_it_is_asked_for),
		cmocka_unit_test(test_speedscope_has_the_lines_that_ran),
		cmocka_unit_test(test_names_cannot_break_a_line_or_a_frame),
		cmocka_unit_test(test_a_long_name_is_cut),
		cmocka_unit_test(test_an_empty_profile_is_an_empty_file),
		cmocka_unit_test(test_a_stack_of_ten_thousand_frames_is_whole),
		cmocka_unit_test(test_the_heaviest_stacks_fit_a_terminal),
		cmocka_unit_test(test_a_blocked_stack_says_who_ended_it_and_leads_to_the_line),
		cmocka_unit_test(test_the_end_of_a_long_kernel_name_gives_way_not_what_it_is),
		cmocka_unit_test(test_of_a_python_function_the_file_gives_way_first),
		cmocka_unit_test(test_two_profiles_are_compared_by_the_path_of_names),
		cmocka_unit_test(test_folded_stacks_are_read_back_as_they_were),
		cmocka_unit_test(test_hooked_calls_have_a_column_of_their_number),
		cmocka_unit_test(test_what_is_no_folded_file_is_refused_by_its_line),
		cmocka_unit_test(test_lines_of_other_tools_are_read),
		cmocka_unit_test(test_a_long_line_takes_no_longer_than_many),
		cmocka_unit_test(test_a_profile_compared_with_itself_has_no_changes),
		cmocka_unit_test(test_a_full_disk_is_told_in_every_format),
		cmocka_unit_test(test_endings_choose_the_format),
	};

	return cmocka_run_group_tests(tests, NULL, free_written);
}
