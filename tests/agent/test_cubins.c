// SPDX-License-Identifier: MIT
/* CUPTI tells of a module at each launch of its kernels: it is looked through once. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "agent/lib/cubins.h"
#include "agent/lib/pcs_abi.h"

#define SECTIONS 20000 /* as a library of kernels has */
#define LAUNCHES 20000
#define MS_MOST  2000

struct scene {
	char *cubin;
	size_t bytes;
};

/* In the place of CUPTI. */
uint32_t cuptiGetCubinCrc(struct pcs_crc *given);
uint32_t cuptiGetSassToSourceCorrelation(struct pcs_line *given);

static size_t looked_up;

__attribute__((visibility("default"))) uint32_t cuptiGetCubinCrc(struct pcs_crc *given)
{
	looked_up++;
	given->crc = given->bytes;
	return 0;
}

__attribute__((visibility("default"))) uint32_t
cuptiGetSassToSourceCorrelation(struct pcs_line *given)
{
	given->line = 7;
	given->file = strdup("a.cu");
	given->directory = strdup("/src");
	return 0;
}

/* Sections, of which the last one has lines, if any has. */
static struct scene module(bool lines)
{
	static const char names[] = "\0.shstrtab\0.text.kernel\0.debug_line";
	size_t bytes = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr) + sizeof(names);
	struct scene scene = { calloc(1, bytes), bytes };
	Elf64_Ehdr *head = (void *)scene.cubin;
	Elf64_Shdr *section = (void *)(scene.cubin + sizeof(*head));

	assert_non_null(scene.cubin);
	memcpy(head->e_ident, ELFMAG, SELFMAG);
	head->e_ident[EI_CLASS] = ELFCLASS64;
	head->e_shoff = sizeof(*head);
	head->e_shentsize = sizeof(*section);
	head->e_shnum = SECTIONS;
	head->e_shstrndx = 1;
	for (size_t i = 1; i < SECTIONS; i++)
		section[i].sh_name = 11;
	section[1] = (Elf64_Shdr){ .sh_name = 1,
		                   .sh_offset = bytes - sizeof(names),
		                   .sh_size = sizeof(names) };
	if (lines)
		section[SECTIONS - 1].sh_name = 24;
	memcpy(scene.cubin + bytes - sizeof(names), names, sizeof(names));
	return scene;
}

static void free_scene(struct scene scene)
{
	free(scene.cubin);
}

static int64_t ms_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool has_line(const struct scene *scene)
{
	char path[CUBINS_PATH];
	uint32_t line = 0;

	cubins_turn();
	return cubins_line(scene->bytes, "kernel", 0x80, path, &line) && line == 7 &&
	       !strcmp(path, "/src/a.cu");
}

static void test_a_module_is_looked_through_once(void **state)
{
	struct scene scene = module(false);
	int64_t from = ms_now();

	cubins_open(NULL);
	for (int i = 0; i < LAUNCHES; i++)
		cubins_loaded(3, scene.cubin, scene.bytes);
	assert_in_range(ms_now() - from, 0, MS_MOST);
	assert_false(has_line(&scene));
	cubins_close();
	free_scene(scene);
}

static void test_another_at_its_place_is_looked_through_as_well(void **state)
{
	struct scene none = module(false), lines = module(true);

	cubins_open(NULL);
	cubins_loaded(3, none.cubin, none.bytes);
	assert_false(has_line(&none));
	memcpy(none.cubin, lines.cubin, lines.bytes);
	cubins_loaded(4, none.cubin, none.bytes);
	assert_true(has_line(&none));
	cubins_close();
	free_scene(none);
	free_scene(lines);
}

static void test_the_next_session_looks_anew(void **state)
{
	struct scene scene = module(true);

	for (int i = 0; i < 3; i++) {
		cubins_open(NULL);
		assert_false(has_line(&scene));
		cubins_loaded(5, scene.cubin, scene.bytes);
		assert_true(has_line(&scene));
		cubins_close();
	}
	cubins_loaded(5, scene.cubin, scene.bytes); /* nobody wants it */
	assert_int_equal(looked_up, 4);             /* with the one of the test before */
	free_scene(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_module_is_looked_through_once),
		cmocka_unit_test(test_another_at_its_place_is_looked_through_as_well),
		cmocka_unit_test(test_the_next_session_looks_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
