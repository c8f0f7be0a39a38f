// SPDX-License-Identifier: MIT
/*
 * Writes profiles whose numbers are known:
 *
 *     profiles plain out.svg      the scene of the unit tests
 *     profiles large out.svg      a training run as a person may look at it
 *     profiles hostile out.svg    names that try to break out
 *     profiles deep out.svg       a stack of 10,000 frames
 *     profiles many out.svg       100,000 stacks
 *     profiles empty out.svg
 *     profiles shell out.svg      a shell that soon became Python
 *     profiles threads out.svg    the scene of the unit tests, by thread
 *     profiles diff out.svg       what changed from the scene of the unit tests to a faster one
 */
#include <stdlib.h>
#include <string.h>

#include "../unit/profile_scene.h"

#include "profile/profile_write.h"

#define DEEPEST 10000

static void add_names(struct profile *profile, unsigned number, enum weight_kind weight,
                      uint64_t ns, const struct stack_frame *frames, size_t n)
{
	const struct stack_frame **inwards = calloc(n, sizeof(*inwards));
	struct stack stack = { .id = number, .n_frames = n, .frames = inwards };
	bool gpu = frames[n - 1].kind == FRAME_GPU;

	for (size_t i = 0; i < n; i++)
		inwards[n - 1 - i] = &frames[i];
	if (gpu) {
		stack.n_frames--;
		stack.frames++;
	}
	profile_add(profile,
	            &(struct profile_sample){ .kind = weight,
	                                      .ns = ns,
	                                      .stack = &stack,
	                                      .gpu = gpu ? frames[n - 1].function : NULL });
	free(inwards);
}

/* ---- a training run -------------------------------------------------------------------------- */

static unsigned random_state = 1;

static unsigned pick(unsigned n)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 16) % n;
}

static const char *const modules[] = {
	"Embedding.forward", "Attention.forward", "MLP.forward",
	"LayerNorm.forward", "cross_entropy",     "Dropout.forward"
};
static const char *const operators[] = {
	"at::native::embedding(at::Tensor const&, at::Tensor const&, long, bool, bool)",
	"at::_ops::scaled_dot_product_attention::call(at::Tensor const&, at::Tensor const&)",
	"at::addmm(at::Tensor const&, at::Tensor const&)",
	"at::native::layer_norm_cuda(at::Tensor const&, c10::ArrayRef<long>)",
	"at::native::log_softmax_cuda_out(at::Tensor const&, long, bool)",
	"at::native::native_dropout_cuda(at::Tensor const&, double, std::optional<bool>)",
};
static const char *const kernels[] = {
	"[GPU_Kernel]void at::native::(anonymous namespace)::indexSelectLargeIndex<float, "
	"long>(...)",
	"[GPU_Kernel]flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>, false, true>",
	"[GPU_Kernel]sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_"
	"warpgroupsize1x1x1",
	"[GPU_Kernel]void at::native::vectorized_layer_norm_kernel<float, float>(int, float)",
	"[GPU_Kernel]void (anonymous namespace)::softmax_warp_forward<float, float, 10, true>",
	"[GPU_Kernel]void at::native::fused_dropout_kernel_vec<float, float, unsigned, 1, 4>",
};

static size_t training_step(struct stack_frame *frames, unsigned module)
{
	static const char *const ways[] = { "step_forward", "step_backward" };
	size_t n = 0;

	frames[n++] = (struct stack_frame){ 0, FRAME_NATIVE, false, "_start", "python3.11" };
	frames[n++] =
		(struct stack_frame){ 0, FRAME_NATIVE, false, "__libc_start_main", "libc.so.6" };
	frames[n++] = (struct stack_frame){ 0,    FRAME_PYTHON, false, "<module>",
		                            NULL, "train.py",   212,   1 };
	frames[n++] = (struct stack_frame){ 0,    FRAME_PYTHON, false, "Trainer.fit",
		                            NULL, "trainer.py", 88,    60 };
	frames[n++] = (struct stack_frame){ 0,    FRAME_PYTHON, false, ways[pick(3) > 0],
		                            NULL, "trainer.py", 120,   110 };
	if (pick(2))
		frames[n++] = (struct stack_frame){ 0,    FRAME_PYTHON, false, "Block.forward",
			                            NULL, "model.py",   40,    31 };
	frames[n++] = (struct stack_frame){ 0,    FRAME_PYTHON, false, modules[module],
		                            NULL, "model.py",   70,    61 };
	if (pick(9))
		frames[n++] = (struct stack_frame){ 0, FRAME_NATIVE, false, operators[module],
			                            "libtorch_cuda.so" };
	return n;
}

static size_t into_cuda(struct stack_frame *frames, size_t n, bool deep)
{
	frames[n++] =
		(struct stack_frame){ 0, FRAME_CUDA, false, "cudaLaunchKernel", "libcudart.so.12" };
	for (unsigned i = deep ? 1 + pick(3) : 0; i; i--)
		frames[n++] = (struct stack_frame){ 0, FRAME_CUDA, false, NULL, "libcuda.so.1" };
	if (!deep || pick(2))
		return n;
	frames[n++] =
		(struct stack_frame){ 0, FRAME_KERNEL_MODE, false, "entry_SYSCALL_64", "kernel" };
	frames[n++] =
		(struct stack_frame){ 0, FRAME_KERNEL_MODE, false, "__x64_sys_ioctl", "kernel" };
	frames[n++] =
		(struct stack_frame){ 0, FRAME_DRIVER, false, "nvidia_unlocked_ioctl", "nvidia" };
	return n;
}

static void fill_large(struct profile *profile)
{
	struct stack_frame frames[32];

	for (unsigned i = 0; i < 4000; i++) {
		unsigned module = pick(3) ? 1 + pick(2) : pick(6);
		size_t n = training_step(frames, module);
		bool gpu = pick(2);

		if (gpu || pick(2))
			n = into_cuda(frames, n, !gpu);
		if (gpu)
			frames[n++] = (struct stack_frame){ 0, FRAME_GPU, false, kernels[module] };
		add_names(profile, i, gpu ? WEIGHT_GPU : WEIGHT_CPU,
		          gpu ? 1000 * (1000 + pick(3000)) : 1010101, frames, n);
	}
	for (unsigned i = 0; i < 400; i++) {
		size_t n = training_step(frames, 0);

		n = 3 + pick(2);
		frames[n++] =
			(struct stack_frame){ 0,    FRAME_PYTHON,    false, "DataLoader.__next__",
			                      NULL, "dataloader.py", 700,   690 };
		if (pick(2))
			frames[n++] = (struct stack_frame){ 0, FRAME_JIT, false,
				                            "decode_jpeg_inner", "[jit]" };
		add_names(profile, 5000 + i, pick(4) ? WEIGHT_CPU : WEIGHT_OFF_CPU, 1010101, frames,
		          n);
	}
	scene_add(profile, WEIGHT_CPU, &scene_cut, 60, NULL);
	scene_add(profile, WEIGHT_CPU, &scene_in_jit, 20, NULL);
}

/* ---- other profiles -------------------------------------------------------------------------- */

static void fill_hostile(struct profile *profile)
{
	static char large[65537];
	const char *const names[] = {
		"</script><script>document.title='broken'</script>",
		"]]><svg onload=\"document.title='broken'\"/>",
		"\"'><img src=x onerror=document.title='broken'>",
		"--><!-- &amp;&#x3c;",
		"a;b\nc\r\n 5\n\033[31m\007",
		"\xe2\x80\xae desrever \xe2\x81\xa6",
		"\xff\xfe\xed\xa0\x80 \xef\xbf\xbe \xef\xbf\xbf",
		"${document.title='broken'}`\\",
		"javascript:document.title='broken'",
		"__proto__",
		"constructor",
		"",
		large,
	};
	struct stack_frame frames[ARRAY_SIZE(names)];

	memset(large, '<', sizeof(large) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		frames[i] = (struct stack_frame){ 0,        i % FRAME_GPU, false, names[i],
			                          names[i], names[i],      1,     1 };
	add_names(profile, 0, WEIGHT_CPU, MS, frames, ARRAY_SIZE(frames));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		add_names(profile, (unsigned)i + 1, WEIGHT_CPU, MS, &frames[i], 1);
		scene_add(profile, WEIGHT_GPU, &scene_cut, 1, names[i]);
	}
}

static void fill_deep(struct profile *profile)
{
	static struct stack_frame frames[DEEPEST];
	static char names[DEEPEST][8];

	for (int i = 0; i < DEEPEST; i++) {
		snprintf(names[i], sizeof(names[i]), "f%d", i);
		frames[i].function = names[i];
	}
	add_names(profile, 0, WEIGHT_CPU, MS, frames, DEEPEST);
}

static void fill_many(struct profile *profile)
{
	struct stack_frame frames[30];
	char names[30][32];

	for (unsigned i = 0; i < 100000; i++) {
		for (unsigned level = 0; level < 30; level++) {
			unsigned shift = level < 14 ? 17 : 29 - level;

			snprintf(names[level], sizeof(names[level]), "function_%u_%u", level,
			         i >> shift);
			frames[level] = (struct stack_frame){
				0, level % FRAME_GPU, false, names[level], "m.so", "f.c", level,
				1, i >> shift
			};
		}
		add_names(profile, i, WEIGHT_CPU, MS, frames, 30);
	}
}

/* Many places for a moment, and one for long. */
static void fill_shell(struct profile *profile)
{
	for (unsigned i = 0; i < 20; i++) {
		const struct stack_frame bash[] = {
			{ .function = "main", .module = "bash" },
			{ .function = "execute", .module = "bash", .offset = 1 + i }
		};

		add_names(profile, i, WEIGHT_CPU, 1000, bash, ARRAY_SIZE(bash));
	}
	const struct stack_frame python[] = { { .function = "main", .module = "python3.11" } };

	add_names(profile, 20, WEIGHT_CPU, 100 * MS, python, ARRAY_SIZE(python));
}

static void fill_empty(struct profile *profile)
{
}

static const struct {
	const char *name;
	void (*fill)(struct profile *profile);
} profiles[] = {
	{ "plain", scene_fill },         { "large", fill_large },   { "hostile", fill_hostile },
	{ "faster", scene_fill_faster }, { "deep", fill_deep },     { "many", fill_many },
	{ "empty", fill_empty },         { "threads", scene_fill }, { "shell", fill_shell },
};

static struct profile *make(const char *name)
{
	const struct profile_options options = { .per_thread = !strcmp(name, "threads") };
	struct profile *profile = profile_new(&options);

	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++) {
		if (strcmp(profiles[i].name, name))
			continue;
		profiles[i].fill(profile);
		return profile;
	}
	fprintf(stderr, "profiles: there is no %s\n", name);
	exit(2);
}

static const struct profile_info *info_of(const char *name)
{
	static const struct profile_info large = { .subject = "python3 train.py",
		                                   .hostname = "gpu1",
		                                   .duration_ns = 10000 * MS,
		                                   .rate_hz = 99,
		                                   .processes = 1 };
	static const struct profile_info hostile = { .subject = "</title><script>alert(1)</script>",
		                                     .hostname = "]]>\033[31m" };

	return !strcmp(name, "large") ? &large : !strcmp(name, "hostile") ? &hostile : &scene_info;
}

static int write_one(const char *name, const char *file, FILE *out, struct err *err)
{
	struct profile *profile = make(name);
	int rc = profile_write(profile, info_of(name), profile_format_of(file), out, "the profile",
	                       err);

	profile_free(profile);
	return rc;
}

static int write_diff(const char *file, FILE *out, struct err *err)
{
	struct profile *before = make("plain"), *after = make("faster");
	const struct profile_pair pair = { before, after, &scene_info, &scene_info };
	int rc = profile_diff_write(&pair, profile_format_of(file), out, "the difference", err);

	profile_free(before);
	profile_free(after);
	return rc;
}

int main(int argc, char **argv)
{
	struct err err = { 0 };
	FILE *out;
	int rc;

	if (argc != 3 || profile_format_of(argv[2]) == PROFILE_FORMATS) {
		fprintf(stderr, "usage: profiles NAME FILE\n");
		return 2;
	}
	out = fopen(argv[2], "w");
	if (!out) {
		perror("profiles");
		return 1;
	}
	rc = strcmp(argv[1], "diff") ? write_one(argv[1], argv[2], out, &err)
	                             : write_diff(argv[2], out, &err);
	if (rc)
		fprintf(stderr, "profiles: %s\n", err.text);
	fclose(out);
	return rc ? 1 : 0;
}
