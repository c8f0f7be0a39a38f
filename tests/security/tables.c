// SPDX-License-Identifier: MIT
/*
 * tables FOLDER FILES: a program whose code is in so many files of its own, each with a million and
 * a half functions. It runs in one of them after the other, at another place each time. Prints
 * "ready", and goes on until standard input ends.
 */
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE        4096u
#define CODE        (1u << 20)
#define STEP        16u /* bytes of a piece of code */
#define FUNCTIONS   1500000u
#define SYMBOLS     (FUNCTIONS * sizeof(Elf64_Sym))
#define SYMBOLS_AT  (PAGE + CODE)
#define NAMES_AT    (SYMBOLS_AT + SYMBOLS)
#define SECTIONS_AT (NAMES_AT + 64)
#define BYTES       (SECTIONS_AT + 3 * sizeof(Elf64_Shdr))

static volatile int over;

static void *watch_input(void *data)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	over = 1;
	return data;
}

static void fill(char *file, unsigned seed)
{
	static const uint8_t wait_and_return[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
	Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
		              .e_type = ET_DYN,
		              .e_machine = EM_X86_64,
		              .e_phoff = sizeof(header),
		              .e_shoff = SECTIONS_AT,
		              .e_phentsize = sizeof(Elf64_Phdr),
		              .e_phnum = 1,
		              .e_shentsize = sizeof(Elf64_Shdr),
		              .e_shnum = 3 };
	Elf64_Phdr segment = { .p_type = PT_LOAD,
		               .p_flags = PF_R | PF_X,
		               .p_offset = PAGE,
		               .p_vaddr = PAGE,
		               .p_filesz = CODE,
		               .p_memsz = CODE };
	Elf64_Shdr sections[3] = {
		[1] = { .sh_type = SHT_SYMTAB,
		        .sh_offset = SYMBOLS_AT,
		        .sh_size = SYMBOLS,
		        .sh_link = 2,
		        .sh_entsize = sizeof(Elf64_Sym) },
		[2] = { .sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = 64 }
	};
	Elf64_Sym *symbols = (void *)(file + SYMBOLS_AT);

	memcpy(file, &header, sizeof(header));
	memcpy(file + sizeof(header), &segment, sizeof(segment));
	memcpy(file + SECTIONS_AT, sections, sizeof(sections));
	memcpy(file + NAMES_AT + 1, "function", 9);
	for (unsigned i = 0; i < CODE; i += STEP)
		memcpy(file + PAGE + i, wait_and_return, sizeof(wait_and_return));
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		seed = seed * 1103515245 + 12345; /* in no order: they are to be sorted */
		symbols[i] = (Elf64_Sym){ .st_name = 1,
			                  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			                  .st_shndx = 1,
			                  .st_value = PAGE + (seed >> 4),
			                  .st_size = STEP };
	}
}

static char *map_file(const char *folder, int number)
{
	char path[4096], *file, *code;
	int fd;

	snprintf(path, sizeof(path), "%s/tables-%d-%d.so", folder, getpid(), number);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	if (fd < 0 || ftruncate(fd, BYTES))
		exit(1);
	file = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		exit(1);
	fill(file, (unsigned)number + 7);
	munmap(file, BYTES);
	code = mmap(NULL, CODE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, PAGE);
	unlink(path);
	close(fd);
	return code == MAP_FAILED ? NULL : code;
}

int main(int argc, char **argv)
{
	int files = argc == 3 ? atoi(argv[2]) : 0;
	pthread_t thread;
	char *code[64];

	if (files < 1 || files > 64)
		return 2;
	for (int i = 0; i < files; i++) {
		code[i] = map_file(argv[1], i);
		if (!code[i])
			return 1;
	}
	pthread_create(&thread, NULL, watch_input, NULL);
	puts("ready");
	fflush(stdout);
	for (int i = 0; !over; i = (i + 1) % files)
		((void (*)(long))(code[i] + STEP * (random() % (CODE / STEP))))(1000000);
	return 0;
}
