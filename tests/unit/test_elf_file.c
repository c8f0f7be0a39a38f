// SPDX-License-Identifier: MIT
/* Which files are CUDA modules: by shape of file, and the ones that NVIDIA ships. */
#include "elf_build.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include <time.h>

/* ---- drivers --------------------------------------------------------------------------------- */

static const char driver_names[] =
	"cuInit cuMemAlloc cuMemAlloc_v2 cuLaunchKernel cuLaunchKernel_ptsz";

static void expect_driver(int fd)
{
	struct elf_file *file = open_module(fd, ELF_DYNSYM_ONLY);

	assert_true(elf_file_has_layer(file, LAYER_DRIVER));
	assert_false(elf_file_has_layer(file, LAYER_RUNTIME));
	assert_int_equal(find(file, "cuInit")->layer, LAYER_DRIVER);
	expect_names(file, driver_names);
	elf_file_free(file);
}

static void test_driver_is_found_by_gnu_hash(void **state)
{
	expect_driver(build(driver, LIBRARY " -Wl,--hash-style=gnu"));
}

static void test_driver_is_found_by_sysv_hash(void **state)
{
	expect_driver(build(driver, LIBRARY " -Wl,--hash-style=sysv"));
}

static void test_driver_is_found_with_both_hashes(void **state)
{
	expect_driver(build(driver, LIBRARY " -Wl,--hash-style=both"));
}

/* Overwrites the tag of a PT_DYNAMIC entry with one that nobody knows. */
static void hide_dynamic(int fd, int64_t tag)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Dyn entry;

	get(fd, &header, sizeof(header), 0);
	for (int i = 0; i < header.e_phnum; i++) {
		get(fd, &segment, sizeof(segment), header.e_phoff + i * sizeof(segment));
		if (segment.p_type == PT_DYNAMIC)
			break;
	}
	assert_int_equal(segment.p_type, PT_DYNAMIC);
	for (off_t at = (off_t)segment.p_offset;; at += sizeof(entry)) {
		get(fd, &entry, sizeof(entry), at);
		assert_true(entry.d_tag != DT_NULL);
		if (entry.d_tag == tag) {
			entry.d_tag = 0x6abcdef0;
			put(fd, &entry, sizeof(entry), at);
			return;
		}
	}
}

static void test_driver_without_a_hash_table_is_found(void **state)
{
	int fd = build(driver, LIBRARY " -Wl,--hash-style=gnu");

	hide_dynamic(fd, DT_GNU_HASH);
	expect_driver(fd);
}

static void test_library_without_a_hash_table_is_no_module(void **state)
{
	int fd = build("int xcuInitx(void) { return 1; }", LIBRARY " -s -Wl,--hash-style=gnu");

	hide_dynamic(fd, DT_GNU_HASH);
	expect_answer(fd, ELF_WHOLE, 1);
}

static void test_stripped_driver_is_found(void **state)
{
	expect_driver(build(driver, LIBRARY " -s"));
}

static void test_driver_without_section_headers_is_found(void **state)
{
	Elf64_Ehdr header;
	int fd = build(driver, LIBRARY);

	get(fd, &header, sizeof(header), 0);
	header.e_shoff = 0;
	header.e_shnum = 0;
	put(fd, &header, sizeof(header), 0);
	expect_driver(fd);
}

static void test_driver_with_wrong_section_headers_is_found(void **state)
{
	Elf64_Ehdr header;
	int fd = build(driver, LIBRARY);

	get(fd, &header, sizeof(header), 0);
	header.e_shoff = 1ull << 40;
	put(fd, &header, sizeof(header), 0);
	expect_driver(fd);
}

static void test_cu_init_alone_makes_no_driver(void **state)
{
	expect_answer(build("int cuInit(int n) { return n; }", LIBRARY " -s"), ELF_WHOLE, 1);
}

static void test_driver_called_but_not_defined_makes_no_driver(void **state)
{
	expect_answer(build("int cuInit(int); int cuLaunchKernel(int);\n"
	                    "int f(void) { return cuInit(0) + cuLaunchKernel(1); }",
	                    LIBRARY " -s"),
	              ELF_WHOLE, 1);
}

static void test_driver_functions_hidden_from_others_make_no_driver(void **state)
{
	int fd = build(driver, LIBRARY " -fvisibility=hidden");

	expect_answer(fd, ELF_WHOLE, 1);
}

static void test_other_libraries_of_the_toolkit_are_no_modules(void **state)
{
	expect_answer(build("int cufftExecC2C(void) { return 1; }\n"
	                    "int cublasCreate_v2(void) { return 2; }\n"
	                    "int cuSolverSomething(void) { return 3; }",
	                    LIBRARY " -s"),
	              ELF_WHOLE, 1);
}

/* ---- runtimes -------------------------------------------------------------------------------- */

static const char runtime_names[] =
	"cudaMalloc cudaLaunchKernel __cudaRegisterFunction cudaMemcpyAsync_ptsz";

static void expect_runtime(int fd, enum elf_depth depth)
{
	struct elf_file *file = open_module(fd, depth);

	assert_false(elf_file_has_layer(file, LAYER_DRIVER));
	assert_true(elf_file_has_layer(file, LAYER_RUNTIME));
	assert_int_equal(find(file, "cudaMalloc")->layer, LAYER_RUNTIME);
	assert_int_equal(find(file, "__cudaRegisterFunction")->layer, LAYER_RUNTIME);
	expect_names(file, runtime_names);
	elf_file_free(file);
}

static void test_shared_runtime_is_found(void **state)
{
	expect_runtime(build(runtime, LIBRARY " -s"), ELF_DYNSYM_ONLY);
}

/* With so many symbols that a wrong hash leads to a wrong bucket. */
static void test_runtime_functions_are_found_among_many(void **state)
{
	struct buf source = { 0 };

	buf_puts(&source, runtime);
	for (int i = 0; i < 2000; i++)
		buf_printf(&source, "int filler_%d(void) { return 1; }\n", i);
	expect_runtime(build(source.data, LIBRARY " -s -Wl,--hash-style=sysv"), ELF_DYNSYM_ONLY);
	expect_runtime(build(source.data, LIBRARY " -s -Wl,--hash-style=gnu"), ELF_DYNSYM_ONLY);
	buf_free(&source);
}

static void test_versioned_runtime_has_plain_names(void **state)
{
	write_file(in_dir("map"), "libcudart.so.13 { cuda*; __cuda*; };");
	expect_runtime(build(runtime, LIBRARY " -s -Wl,--version-script=map"), ELF_DYNSYM_ONLY);
}

static void test_every_version_of_a_function_is_found(void **state)
{
	struct elf_file *file;

	write_file(in_dir("map"), "V1 { local: *_1; *_2; }; V2 { } V1;");
	file = open_module(
		build("int cudaLaunchKernel(void) { return 1; }\n"
	              "int free_1(void) { return 2; }\n"
	              "int free_2(void) { return 3; }\n"
	              "__asm__(\".symver free_1, cudaFree@V1\\n.symver free_2, cudaFree@@V2\");",
	              LIBRARY " -Wl,--version-script=map"),
		ELF_DYNSYM_ONLY);
	expect_names(file, "cudaLaunchKernel cudaFree cudaFree");
	elf_file_free(file);
}

static void test_static_runtime_in_a_program_is_found(void **state)
{
	expect_runtime(build(runtime, PROGRAM), ELF_SMALL_SYMTAB);
}

static void test_static_runtime_in_a_dynamic_program_is_found(void **state)
{
	expect_runtime(build(runtime, "-pie -fPIE -nostdlib -Wl,-e,start "
	                              "-Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2"),
	               ELF_SMALL_SYMTAB);
}

/* As nvcc's default leaves it in an executable: the calls are local symbols. */
static void test_local_symbols_of_a_static_runtime_are_found(void **state)
{
	build(runtime, PROGRAM);
	run("objcopy -L cudaLaunchKernel -L cudaMalloc a.out");
	expect_runtime(reopen(), ELF_SMALL_SYMTAB);
}

static void test_versions_in_symtab_are_taken_off(void **state)
{
	build(runtime, PROGRAM);
	run("objcopy --redefine-sym cudaLaunchKernel=cudaLaunchKernel@@libcudart.so.13 "
	    "--redefine-sym cudaMalloc=cudaMalloc@libcudart.so.12 a.out");
	expect_runtime(reopen(), ELF_SMALL_SYMTAB);
}

static void test_stripped_static_runtime_is_not_found(void **state)
{
	build(runtime, PROGRAM);
	run("strip a.out");
	expect_answer(reopen(), ELF_WHOLE, 1);
}

static void test_symtab_is_left_alone_when_told(void **state)
{
	expect_answer(build(runtime, PROGRAM), ELF_DYNSYM_ONLY, 2);
}

static void test_large_symtab_is_read_only_when_told(void **state)
{
	int fd = build(runtime, PROGRAM);

	enlarge_strings(fd);
	expect_answer(dup(fd), ELF_SMALL_SYMTAB, 2);
	expect_runtime(fd, ELF_WHOLE);
}

static void test_caller_of_the_runtime_is_no_module(void **state)
{
	expect_answer(build("int cudaLaunchKernel(int);\n"
	                    "int f(void) { return cudaLaunchKernel(0); }",
	                    LIBRARY),
	              ELF_WHOLE, 1);
}

/* Its own table then has the function's type, but no place. */
static void test_program_linked_with_the_shared_runtime_is_no_module(void **state)
{
	int fd;

	close(build(runtime, LIBRARY " -Wl,-soname,libcudart.so"));
	run("mv a.out libcudart.so");
	fd = build("int cudaLaunchKernel(int); int start(void) { return cudaLaunchKernel(0); }",
	           "-nostdlib -Wl,-e,start libcudart.so -Wl,--hash-style=gnu");
	expect_answer(dup(fd), ELF_WHOLE, 1);
	hide_dynamic(fd, DT_GNU_HASH);
	expect_answer(fd, ELF_WHOLE, 1);
}

/* ---- files that are made to take long -------------------------------------------------------- */

#define HOSTILE_SYMBOLS (1u << 22)
#define HOSTILE_PLACES  255

/*
 * A .symtab of 100 MB, whose symbols are functions, and that often the name that is looked for:
 * none of them is any symbol's.
 */
static int build_hostile_symtab(size_t places)
{
	static const char name[] = "cudaLaunchKernel";
	size_t symtab = 4096, strings = symtab + HOSTILE_SYMBOLS * sizeof(Elf64_Sym);
	size_t strings_bytes = places * sizeof(name) + 1;
	Elf64_Shdr sections[3] = {
		{ 0 },
		{ .sh_type = SHT_SYMTAB,
		  .sh_offset = symtab,
		  .sh_size = HOSTILE_SYMBOLS * sizeof(Elf64_Sym),
		  .sh_entsize = sizeof(Elf64_Sym),
		  .sh_link = 2 },
		{ .sh_type = SHT_STRTAB, .sh_offset = strings, .sh_size = strings_bytes },
	};
	Elf64_Sym *part = calloc(65536, sizeof(*part));
	int fd = build(runtime, PROGRAM);
	Elf64_Ehdr head;

	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	close(fd);
	head.e_shoff = 1024;
	head.e_shnum = 3;
	head.e_phnum = 1; /* PT_NULL */
	head.e_phoff = 512;
	head.e_shstrndx = 0;
	fd = open(in_dir("hostile"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(pwrite(fd, sections, sizeof(sections), 1024), sizeof(sections));
	for (size_t i = 0; i < 65536; i++)
		part[i] = (Elf64_Sym){ .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			               .st_shndx = 1 };
	for (size_t i = 0; i < HOSTILE_SYMBOLS; i += 65536)
		assert_int_equal(pwrite(fd, part, 65536 * sizeof(*part),
		                        (off_t)(symtab + i * sizeof(*part))),
		                 65536 * sizeof(*part));
	for (size_t i = 0; i < places; i++)
		assert_int_equal(
			pwrite(fd, name, sizeof(name), (off_t)(strings + 1 + i * sizeof(name))),
			sizeof(name));
	free(part);
	return fd;
}

static double seconds_to_answer(int fd, enum elf_depth depth, int answer)
{
	double begin = (double)clock();

	expect_answer(fd, depth, answer);
	return ((double)clock() - begin) / CLOCKS_PER_SEC;
}

/* Compared one by one they took thirteen times as long as a single one. */
static void test_symbols_times_places_are_not_compared(void **state)
{
	double one = seconds_to_answer(build_hostile_symtab(1), ELF_WHOLE, 1);
	int fd = build_hostile_symtab(HOSTILE_PLACES);
	double many;

	seconds_to_answer(dup(fd), ELF_SMALL_SYMTAB, 2); /* too many symbols for who waits */
	many = seconds_to_answer(fd, ELF_WHOLE, 1);
	if (many > 5 * one)
		fail_msg("%.3f s with many places, %.3f s with one", many, one);
	unlink(in_dir("hostile"));
}

static void test_longer_names_are_no_runtime(void **state)
{
	expect_answer(build("int start(void) { return 1; }\n"
	                    "int cudaLaunchKernelExC(void) { return 1; }\n"
	                    "int my_cudaLaunchKernel_wrapper(void) { return 1; }",
	                    PROGRAM),
	              ELF_WHOLE, 1);
}

/* The name is also the tail of a longer one, and linkers store such names once. */
static void test_name_that_shares_the_string_of_a_longer_one_is_found(void **state)
{
	struct elf_file *file = open_module(build("int __cudaLaunchKernel(void) { return 1; }\n"
	                                          "int cudaLaunchKernel(void) { return 2; }\n"
	                                          "int start(void) { return 3; }",
	                                          PROGRAM),
	                                    ELF_WHOLE);

	expect_names(file, "__cudaLaunchKernel cudaLaunchKernel");
	elf_file_free(file);
}

#define MOST_STRINGS (256ull << 20)

/* A file with so many takes 8 KiB of a disk, and anybody may map one. */
static void test_strings_take_little_memory_however_many_they_are(void **state)
{
	int fd = build("int __cudaRegisterFunction(void) { return 1; }\n"
	               "int cudaLaunchKernel(void) { return 2; }\n"
	               "int start(void) { return 3; }",
	               PROGRAM),
	    status;
	pid_t child;

	enlarge_strings_to(fd, MOST_STRINGS);
	child = fork();
	if (!child) {
		struct elf_file *file = NULL;
		const struct elf_function *functions;
		struct rusage before, after;

		getrusage(RUSAGE_SELF, &before);
		if (elf_file_open(fd, "the file", ELF_WHOLE, &file, NULL) ||
		    elf_file_functions(file, &functions) != 2)
			_exit(1);
		getrusage(RUSAGE_SELF, &after);
		_exit(after.ru_maxrss - before.ru_maxrss < 64 << 10 ? 0 : 2); /* KiB */
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(fd);
}

#define PART_OF_MANY (64 * 1024 - 128) /* of such strings, at a time */

static void test_a_name_between_two_parts_of_many_strings_is_found(void **state)
{
	int fd = build("int cudaMalloc(void) { return 1; }\n"
	               "int cudaLaunchKernel(void) { return 2; }\n"
	               "int start(void) { return 3; }",
	               PROGRAM);
	struct elf_file *file;
	struct tables tables;
	uint64_t at = 0;
	Elf64_Sym symbol;

	enlarge_strings(fd);
	tables = read_tables(fd);
	do {
		get(fd, &symbol, sizeof(symbol), tables.symbols.sh_offset + at);
		at += sizeof(symbol);
	} while (symbol.st_name != string_of(fd, "cudaMalloc"));
	for (uint32_t place = PART_OF_MANY - 20; place < PART_OF_MANY + 150; place++) {
		put(fd, "\0__cudaMalloc", 14, tables.strings.sh_offset + place - 1);
		for (uint32_t tail = 0; tail <= 2; tail += 2) {
			symbol.st_name = place + tail;
			put(fd, &symbol, sizeof(symbol),
			    tables.symbols.sh_offset + at - sizeof(symbol));
			file = open_module(dup(fd), ELF_WHOLE);
			expect_names(file, tail ? "cudaMalloc cudaLaunchKernel"
			                        : "__cudaMalloc cudaLaunchKernel");
			elf_file_free(file);
		}
	}
	symbol.st_name = UINT32_MAX; /* which has none, hides no other one */
	put(fd, &symbol, sizeof(symbol), tables.symbols.sh_offset + at - sizeof(symbol));
	file = open_module(fd, ELF_WHOLE);
	expect_names(file, "cudaLaunchKernel");
	elf_file_free(file);
}

/* The search reads 64 KiB of the strings at a time: no name may be lost between two parts. */
static void test_name_anywhere_in_the_strings_is_found(void **state)
{
	int fd = build(runtime, PROGRAM);
	uint32_t at = string_of(fd, "cudaLaunchKernel");

	for (uint32_t to = 65536 - 18; to <= 65536 + 1; to++) {
		shift_strings(fd, to - at);
		at = to;
		expect_runtime(dup(fd), ELF_WHOLE);
	}
	close(fd);
}

/* ---- what NVIDIA ships ----------------------------------------------------------------------- */

static int open_toolkit(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/usr/local/cuda/%s", name);
	fd = open(path, O_RDONLY);
	if (fd < 0) {
		SKIP("not here: %s", path);
	}
	return fd;
}

/* What nm lists: the functions of a real file, counted by other means. */
static size_t count_by_nm(const char *options, const char *path, const char *pattern)
{
	char command[512];
	unsigned n = 0;
	FILE *pipe;

	snprintf(command, sizeof(command),
	         "nm --defined-only %s %s | grep -iE '^[0-9a-f]+ t ' | grep -E ' %s' | "
	         "cut -d' ' -f1 | sort -u | wc -l",
	         options, path, pattern);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%u", &n), 1);
	pclose(pipe);
	assert_true(n > 0);
	return n;
}

static void test_real_shared_runtime(void **state)
{
	struct elf_file *file = open_module(open_toolkit("lib64/libcudart.so"), ELF_DYNSYM_ONLY);

	assert_true(elf_file_has_layer(file, LAYER_RUNTIME));
	assert_non_null(find(file, "cudaLaunchKernel"));
	assert_int_equal(count_names(file), count_by_nm("-D", "/usr/local/cuda/lib64/libcudart.so",
	                                                "(cuda|__cuda)[A-Z]"));
	elf_file_free(file);
}

static void test_real_driver_stub(void **state)
{
	struct elf_file *file = open_module(open_toolkit("lib/stubs/libcuda.so"), ELF_DYNSYM_ONLY);

	assert_true(elf_file_has_layer(file, LAYER_DRIVER));
	assert_non_null(find(file, "cuMemAlloc_v2"));
	assert_int_equal(count_names(file),
	                 count_by_nm("-D", "/usr/local/cuda/lib/stubs/libcuda.so", "cu[A-Z]"));
	elf_file_free(file);
}

static void test_real_static_runtime(void **state)
{
	struct elf_file *file;
	char path[128];

	close(open_toolkit("lib64/libcudart_static.a"));
	snprintf(path, sizeof(path), "%s", in_dir("a.out"));
	file = open_module(build("int cudaMalloc(void **, unsigned long);\n"
	                         "int cudaLaunchKernel(void *, long, int, long, int, void **,\n"
	                         "                     unsigned long, void *);\n"
	                         "int main(void) { void *p; return cudaMalloc(&p, 1) +\n"
	                         "                 cudaLaunchKernel(p, 1, 1, 1, 1, 0, 0, 0); }",
	                         "-Wl,--no-as-needed -ldl -lpthread -lrt -Wl,--whole-archive "
	                         "/usr/local/cuda/lib64/libcudart_static.a "
	                         "-Wl,--no-whole-archive"),
	                   ELF_SMALL_SYMTAB);
	assert_true(elf_file_has_layer(file, LAYER_RUNTIME));
	assert_non_null(find(file, "cudaLaunchKernel"));
	assert_non_null(find(file, "__cudaRegisterFunction"));
	assert_int_equal(count_names(file), count_by_nm("", path, "(cuda|__cuda)[A-Z]"));
	elf_file_free(file);
}

static void test_real_library_that_only_calls_cuda(void **state)
{
	expect_answer(open_toolkit("lib64/libcublasLt.so"), ELF_WHOLE, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_driver_is_found_by_gnu_hash),
		cmocka_unit_test(test_driver_is_found_by_sysv_hash),
		cmocka_unit_test(test_driver_is_found_with_both_hashes),
		cmocka_unit_test(test_driver_without_a_hash_table_is_found),
		cmocka_unit_test(test_library_without_a_hash_table_is_no_module),
		cmocka_unit_test(test_stripped_driver_is_found),
		cmocka_unit_test(test_driver_without_section_headers_is_found),
		cmocka_unit_test(test_driver_with_wrong_section_headers_is_found),
		cmocka_unit_test(test_cu_init_alone_makes_no_driver),
		cmocka_unit_test(test_driver_called_but_not_defined_makes_no_driver),
		cmocka_unit_test(test_driver_functions_hidden_from_others_make_no_driver),
		cmocka_unit_test(test_other_libraries_of_the_toolkit_are_no_modules),
		cmocka_unit_test(test_shared_runtime_is_found),
		cmocka_unit_test(test_runtime_functions_are_found_among_many),
		cmocka_unit_test(test_versioned_runtime_has_plain_names),
		cmocka_unit_test(test_every_version_of_a_function_is_found),
		cmocka_unit_test(test_static_runtime_in_a_program_is_found),
		cmocka_unit_test(test_static_runtime_in_a_dynamic_program_is_found),
		cmocka_unit_test(test_local_symbols_of_a_static_runtime_are_found),
		cmocka_unit_test(test_versions_in_symtab_are_taken_off),
		cmocka_unit_test(test_stripped_static_runtime_is_not_found),
		cmocka_unit_test(test_symtab_is_left_alone_when_told),
		cmocka_unit_test(test_large_symtab_is_read_only_when_told),
		cmocka_unit_test(test_caller_of_the_runtime_is_no_module),
		cmocka_unit_test(test_program_linked_with_the_shared_runtime_is_no_module),
		cmocka_unit_test(test_symbols_times_places_are_not_compared),
		cmocka_unit_test(test_longer_names_are_no_runtime),
		cmocka_unit_test(test_name_that_shares_the_string_of_a_longer_one_is_found),
		cmocka_unit_test(test_name_anywhere_in_the_strings_is_found),
		cmocka_unit_test(test_real_shared_runtime),
		cmocka_unit_test(test_real_driver_stub),
		cmocka_unit_test(test_real_static_runtime),
		cmocka_unit_test(test_real_library_that_only_calls_cuda),
		cmocka_unit_test(test_strings_take_little_memory_however_many_they_are),
		cmocka_unit_test(test_a_name_between_two_parts_of_many_strings_is_found),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
