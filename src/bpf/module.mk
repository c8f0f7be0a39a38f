# SPDX-License-Identifier: MIT
# The eBPF programs, compiled by clang and carried inside the program: once for records of every call, once (FOLD) for the
# tools that sum calls up, once (STACKS) for records and samples with their stacks, once (both) for sums with stacks.

BPF_OBJ    := $(B)/bpf/cuscope.bpf.o $(B)/bpf/cuscope-fold.bpf.o $(B)/bpf/cuscope-stacks.bpf.o $(B)/bpf/cuscope-memory.bpf.o
DRIVER_BPF := $(B)/bpf/driver.bpf.o
MULTIARCH  := $(shell $(CC) -print-multiarch 2>/dev/null)
BPF_CFLAGS := -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -mcpu=v3 -O2 -g -Wall -Wextra -Werror \
              -Wno-unused-parameter -Wno-unused-function -Isrc -idirafter /usr/include/$(MULTIARCH)

$(B)/bpf/cuscope-fold.bpf.o: BPF_CFLAGS += -DFOLD
$(B)/bpf/cuscope-stacks.bpf.o: BPF_CFLAGS += -DSTACKS
$(B)/bpf/cuscope-memory.bpf.o: BPF_CFLAGS += -DFOLD -DSTACKS

$(DRIVER_BPF): src/bpf/driver.bpf.c $(wildcard src/bpf/*.h)
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -c -o $@ $<

$(BPF_OBJ): src/bpf/cuscope.bpf.c $(wildcard src/bpf/*.h)
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -c -o $@ $<

# embed NAME FILE: its bytes between the symbols NAME and NAME_end
embed = printf '.section .rodata\n.balign 8\n.globl $(1)\n$(1):\n.incbin "%s"\n.globl $(1)_end\n$(1)_end:\n' $(2)

$(B)/bpf/embed.o: $(BPF_OBJ) $(DRIVER_BPF) src/bpf/module.mk
	{ $(call embed,embedded_bpf,$(word 1,$^)); $(call embed,embedded_fold_bpf,$(word 2,$^)); \
	  $(call embed,embedded_stacks_bpf,$(word 3,$^)); $(call embed,embedded_memory_bpf,$(word 4,$^)); \
	  $(call embed,embedded_driver_bpf,$(DRIVER_BPF)); \
	  printf '#ifdef __CET__\n#include <cet.h>\n#endif\n.section .note.GNU-stack,"",%%progbits\n'; } | \
		$(CC) $(HARDEN) -c -x assembler-with-cpp -o $@ -

CARRIED += $(B)/bpf/embed.o

objects: $(B)/bpf/embed.o
