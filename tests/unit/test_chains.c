// SPDX-License-Identifier: MIT
/* Which frames of a stack are the user's, how they are told, and which one is the heaviest. */
#include "unit.h"

#include <time.h>

#include "account/chains.h"
#include "base/array.h"

#define HOME "/home/ann/"

/* ---- stacks by hand ------------------------------------------------------------------------ */

/* Frames and stacks of one test, with ids as a source gives them. */
struct scene {
	struct chains *chains;
	struct stack_frame frames[512];
	const struct stack_frame *pointers[4096];
	struct stack stacks[512];
	uint32_t n_frames, n_pointers, n_stacks;
};

static struct scene scene;

static void begin(void)
{
	chains_free(scene.chains);
	memset(&scene, 0, sizeof(scene));
	scene.chains = chains_new();
}

static const struct stack_frame *frame(struct stack_frame made)
{
	assert_true(scene.n_frames < ARRAY_SIZE(scene.frames));
	made.id = scene.n_frames;
	scene.frames[scene.n_frames] = made;
	return &scene.frames[scene.n_frames++];
}

static const struct stack_frame *python(const char *function, const char *file, uint32_t line)
{
	return frame((struct stack_frame){
		.kind = FRAME_PYTHON, .function = function, .file = file, .line = line });
}

static const struct stack_frame *train(const char *function, uint32_t line)
{
	return python(function, HOME "train.py", line);
}

static const struct stack_frame *native(const char *function, const char *module, const char *file,
                                        uint32_t line)
{
	return frame((struct stack_frame){ .kind = FRAME_NATIVE,
	                                   .function = function,
	                                   .module = module,
	                                   .file = file,
	                                   .line = line });
}

static const struct stack_frame *evaluator(void)
{
	return native("_PyEval_EvalFrameDefault", "python3.12", NULL, 0);
}

static const struct stack_frame *library(void)
{
	return python("Linear.forward", "/usr/lib/python3/dist-packages/torch/nn/linear.py", 125);
}

/* Of frames from the outside on, as calls are written; the last argument is NULL. */
static const struct stack *stack_of(const struct stack_frame *outermost, ...)
{
	const struct stack_frame *frames[256], *at = outermost;
	struct stack *stack = &scene.stacks[scene.n_stacks];
	size_t n = 0;
	va_list list;

	assert_true(scene.n_stacks < ARRAY_SIZE(scene.stacks));
	va_start(list, outermost);
	for (; at; at = va_arg(list, const struct stack_frame *))
		frames[n++] = at;
	va_end(list);
	assert_true(scene.n_pointers + n <= ARRAY_SIZE(scene.pointers));
	*stack = (struct stack){ .id = scene.n_stacks++,
		                 .n_frames = n,
		                 .frames = &scene.pointers[scene.n_pointers] };
	for (size_t i = n; i--;)
		scene.pointers[scene.n_pointers++] = frames[i];
	return stack;
}

static void assert_node(uint32_t node, size_t most, const char *expected)
{
	struct buf text = { 0 };

	chains_label(scene.chains, node, most, &text);
	assert_string_equal(text.data, expected);
	buf_free(&text);
}

static void assert_chain(const struct stack *stack, const char *expected)
{
	assert_node(chains_of(scene.chains, stack), 3, expected);
}

/* ---- which frames -------------------------------------------------------------------------- */

static void test_lines_of_the_user_are_told_without_libraries_and_the_interpreter(void **state)
{
	begin();
	assert_chain(stack_of(native("main", "python3.12", NULL, 0), evaluator(),
	                      train("<module>", 99), evaluator(), train("loop", 91), library(),
	                      evaluator(), train("decode", 27),
	                      native("clock_nanosleep", "libc.so.6", NULL, 0), NULL),
	             "train.py:91 loop > train.py:27 decode");
}

static void test_no_stack_is_the_root(void **state)
{
	begin();
	assert_int_equal(chains_of(scene.chains, NULL), 0);
	assert_node(0, 3, "(no stack)");
	assert_int_equal(
		chains_of(scene.chains,
	                  stack_of(frame((struct stack_frame){ .kind = FRAME_NATIVE }), NULL)),
		0);
	assert_null(chains_frame(scene.chains, 0));
	assert_int_equal(chains_depth(scene.chains, 0), 0);
	assert_int_equal(chains_count(scene.chains), 1);
}

static void test_a_name_can_neither_command_a_terminal_nor_end_a_line(void **state)
{
	char name[1000], expected[200];

	begin();
	assert_chain(stack_of(train("lo\x1b[7mop", 91), evaluator(),
	                      python("b\nChange first: c", HOME "a\r.py", 27), NULL),
	             "train.py:91 lo\\x1b[7mop > a\\x0d.py:27 b\\x0aChange first: c");
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(expected, sizeof(expected), "train.py:91 %.85s...", name);
	assert_chain(stack_of(train(name, 91), NULL), expected);
}

static void test_native_code_has_the_same_shape(void **state)
{
	begin();
	assert_chain(
		stack_of(native("_start", "app", NULL, 0),
	                 native("main", "app", HOME "app.cpp", 90),
	                 native("Model::train(int)", "app", HOME "app.cpp", 40),
	                 native("void Model::grow<float>(int, float)", "app", HOME "model.cpp", 23),
	                 native("malloc", "libc.so.6", NULL, 0), NULL),
		"app.cpp:40 Model::train > model.cpp:23 Model::grow");
	assert_chain(stack_of(native("main", "app", NULL, 0),
	                      native("Model::grow(int)", "app", NULL, 0), NULL),
	             "main (app) > Model::grow (app)");
	assert_chain(stack_of(frame((struct stack_frame){
				      .kind = FRAME_NATIVE, .module = "app", .offset = 0x1234 }),
	                      NULL),
	             "app+0x1234");
}

static void test_what_runs_threads_for_programs_is_none_of_theirs(void **state)
{
	static const char *const modules[] = { "libgomp-a49a47f9.so.1", "libiomp5.so",
		                               "libomp.so.5",           "libmkl_core.so.2",
		                               "libopenblas.so.0",      "libtbb.so.12" };

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(modules); i++)
		assert_chain(stack_of(native("run_thread", modules[i], NULL, 0),
		                      native("scale._omp_fn.0", "app", HOME "app.c", 12),
		                      native("wait_all", modules[i], NULL, 0), NULL),
		             "app.c:12 scale._omp_fn.0");
}

static void test_native_code_inside_of_python_is_the_users_where_its_line_is_known(void **state)
{
	begin();
	assert_chain(stack_of(train("loop", 91), evaluator(),
	                      native("blur", "libblur.so", HOME "blur.c", 12), NULL),
	             "train.py:91 loop > blur.c:12 blur");
	assert_chain(stack_of(train("loop", 91), evaluator(),
	                      native("sha512", "_sha2.cpython-312-x86_64-linux-gnu.so",
	                             "Modules/sha2module.c", 12),
	                      NULL),
	             "train.py:91 loop");
	assert_chain(stack_of(train("loop", 92), evaluator(),
	                      native("npy_sort", "_multiarray_umath.so", NULL, 0), NULL),
	             "train.py:92 loop");
	assert_chain(stack_of(train("loop", 93), library(),
	                      native("npy_sort", "_multiarray_umath.so", "/src/sort.c", 7), NULL),
	             "train.py:93 loop");
	assert_chain(
		stack_of(native("host", "embedder", HOME "host.c", 3), train("loop", 94), NULL),
		"train.py:94 loop");
}

static void test_a_stack_without_the_users_code_is_its_place(void **state)
{
	begin();
	assert_chain(stack_of(native("main", "python3.12", NULL, 0), library(),
	                      native("npy_sort", "_multiarray_umath.so", "/src/sort.c", 7), NULL),
	             "linear.py:125 Linear.forward");
	assert_chain(stack_of(native("clone3", "libc.so.6", NULL, 0),
	                      native("__poll", "libc.so.6", NULL, 0), NULL),
	             "__poll (libc.so.6)");
}

static void test_begins_of_programs_are_told_where_little_else_is(void **state)
{
	begin();
	assert_chain(stack_of(train("<module>", 5), NULL), "train.py:5 <module>");
	assert_chain(stack_of(train("<module>", 99), train("decode", 27), NULL),
	             "train.py:99 <module> > train.py:27 decode");
	assert_chain(stack_of(train("<module>", 99), python("<module>", HOME "data.py", 3),
	                      python("load", HOME "data.py", 8), NULL),
	             "data.py:3 <module> > data.py:8 load");
}

static void test_a_function_that_calls_itself_is_one_frame(void **state)
{
	const struct stack *stack;

	begin();
	stack = stack_of(train("walk", 10), train("walk", 10), train("walk", 12),
	                 train("visit", 30), NULL);
	assert_chain(stack, "train.py:12 walk > train.py:30 visit");
	assert_int_equal(chains_depth(scene.chains, chains_of(scene.chains, stack)), 2);
	/* by the way of another it is not */
	assert_chain(stack_of(train("walk", 10), train("visit", 31), train("walk", 12), NULL),
	             "train.py:10 walk > train.py:31 visit > train.py:12 walk");
}

static void test_a_comprehension_is_one_with_its_function(void **state)
{
	begin();
	assert_chain(stack_of(train("load", 9), train("load.<locals>.<listcomp>", 10),
	                      train("load.<locals>.<listcomp>.<genexpr>", 11), NULL),
	             "train.py:9 load");
	assert_chain(stack_of(train("Data.load", 9), train("Data.load.<locals>.<genexpr>", 11),
	                      train("decode", 30), NULL),
	             "train.py:9 Data.load > train.py:30 decode");
	assert_chain(stack_of(train("load", 9), train("<dictcomp>", 11), NULL), "train.py:9 load");
	/* one that another function goes through is not */
	assert_chain(stack_of(train("pad", 9), train("load.<locals>.<genexpr>", 11), NULL),
	             "train.py:9 pad > train.py:11 load.<locals>.<genexpr>");
	assert_chain(stack_of(train("loader", 9), train("load.<locals>.<genexpr>", 11), NULL),
	             "train.py:9 loader > train.py:11 load.<locals>.<genexpr>");
	assert_chain(stack_of(train("load", 9), train("load.<locals>.<lambda>", 11), NULL),
	             "train.py:9 load > train.py:11 load.<locals>.<lambda>");
}

static const struct stack *in_library(const struct stack_frame *caller)
{
	return stack_of(caller, native("gemm", "libfast.so", NULL, 0),
	                native("pack", "libfast.so", NULL, 0), NULL);
}

static void test_within_a_library_the_users_line_calls_its_outermost_function(void **state)
{
	uint32_t node;

	begin();
	node = chains_of(scene.chains, in_library(native("scale", "app", HOME "app.c", 12)));
	assert_node(chains_called(scene.chains, node), 9, "app.c:12 scale > gemm (libfast.so)");
	node = chains_parent(scene.chains, chains_called(scene.chains, node));
	assert_int_equal(chains_called(scene.chains, node), node); /* it has a line */
	node = chains_of(scene.chains, in_library(native("scale", "app", NULL, 0)));
	assert_int_equal(chains_called(scene.chains, node), node); /* no line is known */
	assert_int_equal(chains_called(scene.chains, 0), 0);
}

static void test_two_functions_of_one_name_in_one_file_are_two(void **state)
{
	begin();
	assert_chain(stack_of(frame((struct stack_frame){ .kind = FRAME_PYTHON,
	                                                  .function = "wrapper",
	                                                  .file = HOME "train.py",
	                                                  .line = 12,
	                                                  .first_line = 10 }),
	                      frame((struct stack_frame){ .kind = FRAME_PYTHON,
	                                                  .function = "wrapper",
	                                                  .file = HOME "train.py",
	                                                  .line = 22,
	                                                  .first_line = 20 }),
	                      NULL),
	             "train.py:12 wrapper > train.py:22 wrapper");
}

static void test_frames_of_the_same_words_are_one_node(void **state)
{
	uint32_t node;

	begin();
	node = chains_of(scene.chains, stack_of(native("f(int)", "app", NULL, 0), NULL));
	assert_int_equal(
		chains_of(scene.chains, stack_of(native("f(double)", "app", NULL, 0), NULL)), node);
	assert_int_not_equal(
		chains_of(scene.chains, stack_of(native("f(int)", "b", NULL, 0), NULL)), node);
	assert_int_equal(chains_count(scene.chains), 3);
}

/* What torch.compile has made of a line is not what its author would recognise. */
static void test_code_that_was_made_is_none_of_the_users(void **state)
{
	begin();
	assert_chain(stack_of(train("train", 19),
	                      python("Runner.call",
	                             "/tmp/torchinductor_ann/mz/"
	                             "cmzmg3upctx7eu3j25n2dy7ctbpwgsry6wvuvank7tb5a4ueubra.py",
	                             1885),
	                      NULL),
	             "train.py:19 train");
	assert_chain(stack_of(train("train", 20), python("call", HOME "cmzmg3upctx7.py", 5), NULL),
	             "train.py:20 train > cmzmg3upctx7.py:5 call");
}

#define SITE "/x/lib/python3.12/site-packages/"

static const struct stack_frame *trainer(const char *function, uint32_t line)
{
	return python(function, SITE "transformers/trainer.py", line);
}

static const struct stack_frame *collator(void)
{
	return python("DataCollator.__call__", SITE "transformers/data/data_collator.py", 271);
}

/* Whose program is no more than a call of a trainer's finds its steps within the trainer. */
static void test_a_package_that_has_the_loop_is_the_users(void **state)
{
	const struct stack *stack;

	begin();
	stack = stack_of(train("<module>", 60), train("main", 50), trainer("Trainer.train", 9),
	                 trainer("Trainer.step", 12), library(), collator(), library(), NULL);
	assert_chain(stack, "train.py:50 main > ... > trainer.py:12 Trainer.step > "
	                    "data_collator.py:271 DataCollator.__call__");
	assert_true(chains_is_users(scene.chains, chains_of(scene.chains, stack)));
	assert_chain(stack_of(train("<module>", 60), train("fit", 40), train("run", 50),
	                      trainer("Trainer.train", 9), trainer("Trainer.step", 12), collator(),
	                      NULL),
	             "... > train.py:50 run > ... > trainer.py:12 Trainer.step > "
	             "data_collator.py:271 DataCollator.__call__");
	assert_chain(stack_of(train("<module>", 60), trainer("Trainer.train", 9), library(),
	                      train("Words.__getitem__", 20), NULL),
	             "train.py:60 <module> > train.py:20 Words.__getitem__");
	assert_chain(stack_of(python("Engine.run", SITE "vllm/engine.py", 5),
	                      python("Engine.step", SITE "vllm/engine.py", 7), library(), NULL),
	             "engine.py:5 Engine.run > engine.py:7 Engine.step");
	assert_chain(stack_of(train("<module>", 60), train("main", 50),
	                      python("fit", SITE "ours/loop.py", 5), library(),
	                      python("load", SITE "ours/data.py", 6), NULL),
	             "train.py:50 main > loop.py:5 fit > data.py:6 load");
	assert_chain(stack_of(python("<module>", "/usr/bin/vllm", 8),
	                      python("serve", SITE "vllm/cli.py", 3), NULL),
	             "vllm:8 <module> > cli.py:3 serve");
}

static void test_other_packages_are_none_of_the_users(void **state)
{
	const struct stack *stack;

	begin();
	assert_chain(stack_of(train("<module>", 60), train("train", 50),
	                      python("norm", SITE "numpy/linalg/linalg.py", 7), NULL),
	             "train.py:60 <module> > train.py:50 train");
	assert_chain(stack_of(train("<module>", 60), library(), NULL), "train.py:60 <module>");
	assert_chain(stack_of(train("<module>", 60), python("run", SITE "six.py", 5), NULL),
	             "train.py:60 <module>");
	assert_chain(stack_of(train("<module>", 60),
	                      python("loads", "/usr/lib/python3.12/json/__init__.py", 5), NULL),
	             "train.py:60 <module>");
	stack = stack_of(library(), NULL);
	assert_chain(stack, "linear.py:125 Linear.forward");
	assert_false(chains_is_users(scene.chains, chains_of(scene.chains, stack)));
}

static const struct stack_frame *nvrtc(void)
{
	return native("nvrtcCompileProgram", "libnvrtc.so.13", NULL, 0);
}

static void test_what_a_compiler_is_for_is_told_by_the_librarys_line(void **state)
{
	const struct stack *compiles, *computes;

	begin();
	compiles = stack_of(
		train("serve", 10), train("answer", 7), library(),
		python("Module._call_impl", "/x/site-packages/torch/nn/modules/module.py", 1776),
		python("attend", "/x/site-packages/transformers/sdpa.py", 158),
		native("run_cudnn_SDP_fprop", "libtorch_cuda.so", NULL, 0),
		native(NULL, "libcudnn_engines_runtime_compiled.so.9", NULL, 0), nvrtc(),
		native("malloc", "libc.so.6", NULL, 0), NULL);
	computes = stack_of(train("serve", 10), train("answer", 7), library(), NULL);
	assert_chain(compiles, "train.py:10 serve > train.py:7 answer > sdpa.py:158 attend");
	assert_chain(computes, "train.py:10 serve > train.py:7 answer");
	assert_true(chains_compile(scene.chains, compiles));
	assert_false(chains_compile(scene.chains, computes));
	assert_false(chains_compile(scene.chains, NULL));
}

/* What stands before a compiler says nothing of what is compiled, nor does what it calls. */
static void test_no_line_of_a_compilers_own_is_told(void **state)
{
	const struct stack *stack;

	begin();
	stack = stack_of(
		train("train", 19),
		python("compile_wrapper", "/x/site-packages/torch/_dynamo/eval_frame.py", 736),
		python("__call__", "/x/site-packages/torch/_dynamo/convert_frame.py", 1200),
		python("simplify", "/x/site-packages/sympy/core.py", 5), NULL);
	assert_chain(stack, "train.py:19 train");
	assert_true(chains_compile(scene.chains, stack));
	stack = stack_of(train("train", 20),
	                 python("run", "/x/site-packages/triton/runtime/jit.py", 569),
	                 python("compile", "/x/site-packages/triton/compiler/compiler.py", 300),
	                 native("mlir::run", "libtriton.so", NULL, 0), NULL);
	assert_chain(stack, "train.py:20 train");
	assert_true(chains_compile(scene.chains, stack));
	stack = stack_of(train("train", 21), nvrtc(), NULL);
	assert_chain(stack, "train.py:21 train");
	assert_true(chains_compile(scene.chains, stack));
	stack = stack_of(train("train", 22),
	                 python("call", "/x/site-packages/torch/_dynamo/eval_frame.py", 736),
	                 python("run", "/x/site-packages/torch/_inductor/cudagraph_trees.py", 9),
	                 NULL);
	assert_false(chains_compile(scene.chains, stack)); /* it runs what was compiled */
	stack = stack_of(native("main", "app", HOME "app.c", 3),
	                 native("build", "app", HOME "app.c", 9), nvrtc(), NULL);
	assert_chain(stack, "app.c:3 main > app.c:9 build");
	assert_true(chains_compile(scene.chains, stack));
}

static void test_callers_of_jax_have_it_and_no_others(void **state)
{
	uint32_t native_one, python_one, other;

	begin();
	native_one = chains_of(scene.chains,
	                       stack_of(train("main", 1), train("step", 2),
	                                native("Call", "libjax_common.so", NULL, 0), NULL));
	python_one = chains_of(
		scene.chains, stack_of(train("main", 1), train("trace", 3),
	                               python("jit", "/x/site-packages/jax/_src/api.py", 7), NULL));
	other = chains_of(scene.chains, stack_of(train("main", 1), train("load", 4), NULL));
	assert_true(chains_has_jax(scene.chains, native_one));
	assert_true(chains_has_jax(scene.chains, python_one));
	assert_true(chains_has_jax(scene.chains, chains_parent(scene.chains, native_one)));
	assert_false(chains_has_jax(scene.chains, other));
}

static void test_what_was_inlined_is_told_where_it_became_known(void **state)
{
	const struct stack_frame *parts[2], *whole;

	begin();
	parts[0] = native("Pool::take", "app", HOME "pool.h", 7);
	parts[1] = native("Model::grow", "app", HOME "model.cpp", 23);
	whole = frame((struct stack_frame){ .kind = FRAME_NATIVE,
	                                    .function = "Model::grow",
	                                    .module = "app",
	                                    .n_parts = 2,
	                                    .parts = parts });
	assert_chain(stack_of(native("main", "app", HOME "app.cpp", 90), whole, NULL),
	             "model.cpp:23 Model::grow > pool.h:7 Pool::take");
	/* a frame alone, of libraries, is its place in its parts */
	parts[0] = native("c10::grow", "libtorch.so", "/src/c10.h", 8);
	parts[1] = native("c10::take", "libtorch.so", "/src/c10.cpp", 9);
	whole = frame((struct stack_frame){
		.kind = FRAME_NATIVE, .module = "libtorch.so", .n_parts = 2, .parts = parts });
	assert_chain(stack_of(whole, NULL), "c10.h:8 c10::grow");
}

/* ---- how they are told --------------------------------------------------------------------- */

static void test_the_innermost_are_told(void **state)
{
	uint32_t node;

	begin();
	node = chains_of(scene.chains, stack_of(train("<module>", 1), train("a", 2), train("b", 3),
	                                        train("c", 4), NULL));
	assert_int_equal(chains_depth(scene.chains, node), 4);
	assert_node(node, 1, "... > train.py:4 c");
	assert_node(node, 2, "... > train.py:3 b > train.py:4 c");
	assert_node(node, 3, "train.py:2 a > train.py:3 b > train.py:4 c");
	assert_node(node, 9, "train.py:2 a > train.py:3 b > train.py:4 c");
	assert_node(node, 0, "... > train.py:4 c");
	node = chains_parent(scene.chains, node);
	assert_string_equal(chains_frame(scene.chains, node)->function, "b");
	assert_node(node, 2, "train.py:2 a > train.py:3 b");
}

static void test_a_file_without_a_line_is_told_behind(void **state)
{
	begin();
	assert_chain(stack_of(python("f", HOME "a.py", 0), NULL), "f (a.py)");
	assert_chain(stack_of(python("f", NULL, 0), NULL), "f");
	assert_chain(stack_of(native("", "app", "", 3), NULL), "app+0x0");
	assert_chain(stack_of(native("", "", "", 0), NULL), "(no stack)");
}

/* ---- bounds -------------------------------------------------------------------------------- */

static void test_of_deep_chains_the_innermost_are_kept(void **state)
{
	static char names[100][8];
	const struct stack_frame *frames[100];
	struct stack deep = { .id = 0, .n_frames = 100, .frames = frames };
	uint32_t node;

	begin();
	for (size_t i = 0; i < 100; i++) {
		snprintf(names[i], sizeof(names[i]), "f%zu", i);
		frames[i] = train(names[i], 1);
	}
	node = chains_of(scene.chains, &deep);
	assert_int_equal(chains_depth(scene.chains, node), CHAINS_DEPTH_MAX);
	assert_node(node, 2, "... > train.py:1 f1 > train.py:1 f0");
	assert_int_equal(chains_cut(scene.chains), 1);
	chains_of(scene.chains, &deep); /* is looked at once */
	assert_int_equal(chains_cut(scene.chains), 1);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* More paths than are kept, by two functions that call each other at any line. */
static void test_nodes_beyond_the_bound_are_counted_and_have_the_nearest(void **state)
{
	enum { LINES = 1200 };
	struct stack_frame *frames = test_calloc(2 * LINES, sizeof(*frames));
	const struct stack_frame *pair[2];
	struct stack stack = { .n_frames = 2, .frames = pair };
	struct chains_weight *own;
	uint64_t ns = 7, heaviest;
	uint32_t node = 0;
	double from;

	begin();
	for (uint32_t i = 0; i < 2 * LINES; i++)
		frames[i] = (struct stack_frame){ .id = i,
			                          .kind = FRAME_PYTHON,
			                          .function = i < LINES ? "outer" : "inner",
			                          .file = HOME "a.py",
			                          .line = i + 1 };
	from = seconds();
	for (uint32_t i = 0; i < LINES * LINES; i++) {
		stack.id = i;
		pair[0] = &frames[LINES + i % LINES];
		pair[1] = &frames[i / LINES];
		node = chains_of(scene.chains, &stack);
	}
	assert_int_equal(chains_count(scene.chains), CHAINS_NODES_MAX);
	/* all but the root and some outer ones are pairs */
	assert_in_range(chains_refused(scene.chains), LINES * LINES - CHAINS_NODES_MAX + 2,
	                LINES * LINES - CHAINS_NODES_MAX + 1 + LINES);
	assert_true(node < CHAINS_NODES_MAX);
	own = test_calloc(CHAINS_NODES_MAX, sizeof(*own));
	for (uint32_t i = 0; i < CHAINS_NODES_MAX; i++)
		own[i] = (struct chains_weight){ i, ns };
	chains_heaviest(scene.chains, own, CHAINS_NODES_MAX, 0.6, &heaviest);
	assert_true(heaviest >= ns * (CHAINS_NODES_MAX - 1 - LINES));
	assert_true(seconds() - from < 10); /* 0.4 s, and 40 times that under a sanitizer */
	test_free(own);
	test_free(frames);
}

/* It is asked for each cause of each account. */
static void test_the_heaviest_of_few_is_found_as_fast_among_half_a_million(void **state)
{
	enum { FLAT = 500000 };
	struct stack_frame *frames = test_calloc(FLAT, sizeof(*frames));
	const struct stack_frame *frame;
	struct stack stack = { .n_frames = 1, .frames = &frame };
	struct chains_weight weights[2];
	uint64_t subtree;
	double from;

	begin();
	for (uint32_t i = 0; i < FLAT; i++) {
		frames[i] = (struct stack_frame){ .id = i,
			                          .kind = FRAME_PYTHON,
			                          .function = "any",
			                          .file = HOME "a.py",
			                          .line = i + 1 };
		stack.id = i;
		frame = &frames[i];
		assert_int_equal(chains_of(scene.chains, &stack), i + 1);
	}
	from = seconds();
	for (uint32_t i = 1; i < 10000; i++) {
		weights[0] = (struct chains_weight){ i, 2 };
		weights[1] = (struct chains_weight){ FLAT - i, 1 };
		assert_int_equal(chains_heaviest(scene.chains, weights, 2, 0.6, &subtree), i);
		assert_int_equal(subtree, 3);
	}
	assert_true(seconds() - from < 1); /* 3 ms; going through all of them once takes a few */
	test_free(frames);
}

/* ---- the heaviest -------------------------------------------------------------------------- */

struct weights {
	struct chains_weight of[64];
	size_t n;
};

static void weigh(struct weights *weights, uint64_t ns, const struct stack *stack)
{
	weights->of[weights->n++] = (struct chains_weight){ chains_of(scene.chains, stack), ns };
}

/* Twice: nothing stays of the first. */
static void assert_heaviest(const struct weights *weights, const char *expected, uint64_t ns)
{
	uint64_t subtree;

	for (unsigned i = 0; i < 2; i++) {
		assert_node(chains_heaviest(scene.chains, weights->of, weights->n, 0.6, &subtree),
		            8, expected);
		assert_int_equal(subtree, ns);
	}
}

static void test_the_heaviest_is_as_far_inside_as_one_function_has_most(void **state)
{
	struct weights weights = { 0 };

	begin();
	weigh(&weights, 10, stack_of(train("loop", 91), NULL));
	weigh(&weights, 50, stack_of(train("loop", 91), train("decode", 27), NULL));
	weigh(&weights, 40,
	      stack_of(train("loop", 91), train("decode", 28), train("open", 3), NULL));
	weigh(&weights, 5, stack_of(train("loop", 91), train("load", 40), NULL));
	assert_heaviest(&weights, "train.py:91 loop > train.py:27 decode", 90);
}

/* Of each one a callee has most, but the innermost of them has little of it all. */
static void test_the_heaviest_has_half_of_all(void **state)
{
	struct weights weights = { 0 };

	begin();
	weigh(&weights, 38,
	      stack_of(train("loop", 91), train("score", 49), train("hook", 43), NULL));
	weigh(&weights, 23, stack_of(train("loop", 91), train("score", 48), NULL));
	weigh(&weights, 22, stack_of(train("loop", 91), train("hook", 43), NULL));
	weigh(&weights, 17, stack_of(train("loop", 91), NULL));
	assert_heaviest(&weights, "train.py:91 loop > train.py:49 score", 61);
}

static void test_lines_that_call_one_function_are_added_up(void **state)
{
	struct weights weights = { 0 };

	begin();
	weigh(&weights, 30, stack_of(train("loop", 91), train("decode", 27), NULL));
	weigh(&weights, 40, stack_of(train("loop", 95), train("decode", 27), NULL));
	weigh(&weights, 20, stack_of(train("loop", 96), train("load", 40), NULL));
	assert_heaviest(&weights, "train.py:95 loop > train.py:27 decode", 70);
}

static void test_what_is_spread_out_ends_the_way(void **state)
{
	struct weights weights = { 0 };

	begin();
	assert_heaviest(&weights, "(no stack)", 0);
	weigh(&weights, 0, stack_of(train("loop", 91), NULL));
	assert_heaviest(&weights, "(no stack)", 0);
	weigh(&weights, 50, stack_of(train("loop", 91), train("decode", 27), NULL));
	weigh(&weights, 50, stack_of(train("loop", 92), train("load", 40), NULL));
	assert_heaviest(&weights, "train.py:91 loop", 100);
	weigh(&weights, 90, stack_of(train("other", 7), NULL));
	assert_heaviest(&weights, "(no stack)", 190);
}

static void test_weights_that_overflow_stay_the_most(void **state)
{
	struct weights weights = { 0 };

	begin();
	weigh(&weights, UINT64_MAX, stack_of(train("loop", 91), train("decode", 27), NULL));
	weigh(&weights, UINT64_MAX, stack_of(train("loop", 91), train("decode", 28), NULL));
	assert_heaviest(&weights, "train.py:91 loop > train.py:27 decode", UINT64_MAX);
}

/* ---- anything ------------------------------------------------------------------------------ */

static uint32_t random_state;

static uint32_t chance(uint32_t below)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 8) % below;
}

static const char *any_of(const char *const texts[], uint32_t n)
{
	uint32_t i = chance(n + 1);

	return i < n ? texts[i] : NULL;
}

static struct stack_frame any_frame(void)
{
	static const char *const functions[] = { "main",
		                                 "<module>",
		                                 "loop",
		                                 "",
		                                 "((((((((",
		                                 "operator<",
		                                 "void f<int>(int)",
		                                 "> > >",
		                                 "a::{lambda(int)#1}::operator()(int) const",
		                                 "\n\x01\xff",
		                                 "cudaLaunchKernel",
		                                 "_start" };
	static const char *const modules[] = { "app", "libtorch.so",     "python3.12", "libc.so.6",
		                               "",    "x.cpython-312.so" };
	static const char *const files[] = {
		"/home/ann/a.py",  "a.cpp", "/", "", "/usr/lib/python3.12/queue.py",
		"/usr/include/x.h"
	};

	return (struct stack_frame){ .kind = (enum frame_kind)chance(FRAME_COUNT),
		                     .function = any_of(functions, ARRAY_SIZE(functions)),
		                     .module = any_of(modules, ARRAY_SIZE(modules)),
		                     .file = any_of(files, ARRAY_SIZE(files)),
		                     .line = chance(3) ? chance(4) : UINT32_MAX,
		                     .first_line = chance(3),
		                     .offset = chance(2) ? chance(3) : UINT64_MAX };
}

/* A third of them have others as their parts. */
static void make_any_frames(void)
{
	static const struct stack_frame *parts[64];

	while (scene.n_frames < 200)
		frame(any_frame());
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		parts[i] = &scene.frames[chance(60)];
	for (size_t i = 60; i < 200; i++) {
		if (chance(3))
			continue;
		scene.frames[i].n_parts = 1 + chance(64);
		scene.frames[i].parts = parts;
	}
}

static const struct stack *any_stack(void)
{
	struct stack *stack = &scene.stacks[scene.n_stacks];
	size_t n = chance(4) ? 1 + chance(8) : 1 + chance(200);

	*stack = (struct stack){ .id = scene.n_stacks++, .n_frames = n };
	if (scene.n_pointers + n > ARRAY_SIZE(scene.pointers))
		scene.n_pointers = 0; /* those before change: they were looked at */
	stack->frames = &scene.pointers[scene.n_pointers];
	for (size_t i = 0; i < n; i++)
		scene.pointers[scene.n_pointers++] = &scene.frames[chance(200)];
	return stack;
}

static void assert_is_chain(uint32_t node)
{
	uint32_t told[CHAINS_DEPTH_MAX];
	struct buf text = { 0 };
	size_t n;

	assert_true(node < chains_count(scene.chains));
	assert_true(chains_depth(scene.chains, node) <= CHAINS_DEPTH_MAX);
	for (size_t most = 1; most < 4; most++) {
		n = chains_told(scene.chains, node, most, told, NULL);
		assert_true(n <= most);
		assert_int_equal(n > 0, node > 0);
		if (n)
			assert_int_equal(told[n - 1], node);
		buf_reset(&text);
		chains_label(scene.chains, node, most, &text);
		assert_true(text.len > 0);
	}
	for (; node; node = chains_parent(scene.chains, node)) {
		assert_non_null(chains_frame(scene.chains, node));
		assert_true(chains_parent(scene.chains, node) < node);
		assert_int_equal(chains_depth(scene.chains, node),
		                 chains_depth(scene.chains, chains_parent(scene.chains, node)) + 1);
	}
	buf_free(&text);
}

/* What is the heaviest has what it is told to have, and no more than there is. */
static void assert_is_heaviest(const struct chains_weight *weights, size_t n, double share)
{
	uint64_t subtree, all = 0, own = 0;
	uint32_t node = chains_heaviest(scene.chains, weights, n, share, &subtree);

	assert_true(node < chains_count(scene.chains));
	for (size_t i = 0; i < n; i++) {
		uint32_t at = weights[i].node;

		all += weights[i].ns;
		while (at > node)
			at = chains_parent(scene.chains, at);
		own += at == node ? weights[i].ns : 0;
	}
	assert_true(own <= subtree);
	assert_true(subtree <= all);
	if (!node)
		assert_int_equal(subtree, all);
}

static void test_stacks_of_anything_are_chains(void **state)
{
	struct chains_weight weights[8192];
	size_t n;

	for (uint32_t seed = 1; seed < 400; seed++) {
		random_state = seed;
		begin();
		make_any_frames();
		while (scene.n_stacks < 100) {
			const struct stack *stack = any_stack();
			uint32_t node = chains_of(scene.chains, stack);

			assert_is_chain(node);
			assert_int_equal(chains_of(scene.chains, stack), node);
		}
		n = chains_count(scene.chains);
		assert_true(n < ARRAY_SIZE(weights));
		for (size_t i = 0; i < n; i++)
			weights[i] = (struct chains_weight){ chance((uint32_t)n),
				                             chance(3) ? 0 : chance(1000) };
		assert_is_heaviest(weights, n, 0.6);
		assert_is_heaviest(weights, n, 0);
	}
}

static int end(void **state)
{
	chains_free(scene.chains);
	scene.chains = NULL;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_lines_of_the_user_are_told_without_libraries_and_the_interpreter),
		cmocka_unit_test(test_no_stack_is_the_root),
		cmocka_unit_test(test_a_name_can_neither_command_a_terminal_nor_end_a_line),
		cmocka_unit_test(test_native_code_has_the_same_shape),
		cmocka_unit_test(
			test_native_code_inside_of_python_is_the_users_where_its_line_is_known),
		cmocka_unit_test(test_a_stack_without_the_users_code_is_its_place),
		cmocka_unit_test(test_begins_of_programs_are_told_where_little_else_is),
		cmocka_unit_test(test_a_function_that_calls_itself_is_one_frame),
		cmocka_unit_test(test_what_runs_threads_for_programs_is_none_of_theirs),
		cmocka_unit_test(test_a_comprehension_is_one_with_its_function),
		cmocka_unit_test(test_within_a_library_the_users_line_calls_its_outermost_function),
		cmocka_unit_test(test_two_functions_of_one_name_in_one_file_are_two),
		cmocka_unit_test(test_frames_of_the_same_words_are_one_node),
		cmocka_unit_test(test_code_that_was_made_is_none_of_the_users),
		cmocka_unit_test(test_a_package_that_has_the_loop_is_the_users),
		cmocka_unit_test(test_other_packages_are_none_of_the_users),
		cmocka_unit_test(test_what_a_compiler_is_for_is_told_by_the_librarys_line),
		cmocka_unit_test(test_no_line_of_a_compilers_own_is_told),
		cmocka_unit_test(test_callers_of_jax_have_it_and_no_others),
		cmocka_unit_test(test_what_was_inlined_is_told_where_it_became_known),
		cmocka_unit_test(test_the_innermost_are_told),
		cmocka_unit_test(test_a_file_without_a_line_is_told_behind),
		cmocka_unit_test(test_of_deep_chains_the_innermost_are_kept),
		cmocka_unit_test(test_nodes_beyond_the_bound_are_counted_and_have_the_nearest),
		cmocka_unit_test(test_the_heaviest_of_few_is_found_as_fast_among_half_a_million),
		cmocka_unit_test(test_the_heaviest_is_as_far_inside_as_one_function_has_most),
		cmocka_unit_test(test_the_heaviest_has_half_of_all),
		cmocka_unit_test(test_lines_that_call_one_function_are_added_up),
		cmocka_unit_test(test_what_is_spread_out_ends_the_way),
		cmocka_unit_test(test_weights_that_overflow_stay_the_most),
		cmocka_unit_test(test_stacks_of_anything_are_chains),
	};

	return cmocka_run_group_tests(tests, NULL, end);
}
