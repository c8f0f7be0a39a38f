# SPDX-License-Identifier: MIT
# The eBPF programs, compiled by clang and carried inside the program.

BPF_OBJ    := $(B)/bpf/cuscope.bpf.o
MULTIARCH  := $(shell $(CC) -print-multiarch 2>/dev/null)
BPF_CFLAGS := -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -mcpu=v3 -O2 -g -Wall -Wextra -Werror \
              -Wno-unused-parameter -Wno-unused-function -Isrc -idirafter /usr/include/$(MULTIARCH)

$(BPF_OBJ): src/bpf/cuscope.bpf.c $(wildcard src/bpf/*.h)
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -c -o $@ $<

$(B)/bpf/embed.o: $(BPF_OBJ)
	printf '.section .rodata\n.balign 8\n.globl embedded_bpf\nembedded_bpf:\n.incbin "%s"\n.globl embedded_bpf_end\nembedded_bpf_end:\n.section .note.GNU-stack,"",%%progbits\n' $< | $(CC) -c -x assembler -o $@ -

LIB_OBJ += $(B)/bpf/embed.o
