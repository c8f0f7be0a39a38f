# SPDX-License-Identifier: MIT
# The program that calls NVML, carried inside cuscope: linked with the C library alone, dynamically in every build, with
# nothing that a sanitizer or a static build adds.

NVML_SRC := $(sort $(wildcard src/gpus/nvml/*.c)) src/gpus/gpu_metrics.c \
            src/base/buf.c src/base/own_memory.c src/base/text.c src/base/xalloc.c
NVML_OBJ := $(NVML_SRC:%.c=$(B)/nvml/%.o)

# glibc before 2.34 has dlopen and threads in libraries of their own, which later ones keep, empty.
NVML_LIBS := -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0

NVML_CFLAGS = $(HARDEN) $(filter-out $(SANITIZE),$(CFLAGS)) -fPIE -ffunction-sections

$(NVML_OBJ): $(B)/nvml/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(NVML_CFLAGS) -c -o $@ $<

$(B)/cuscope-nvml: $(NVML_OBJ)
	$(CC) $(NVML_CFLAGS) -pie $(HARDEN_LDFLAGS) $(filter-out -static%,$(LDFLAGS)) -Wl,--gc-sections -o $@ $^ $(NVML_LIBS)

$(B)/nvml/embedded: $(B)/cuscope-nvml
	objcopy --strip-all $< $@

$(B)/nvml/embedded.o: src/gpus/embedded.S $(B)/nvml/embedded
	$(CC) $(HARDEN) -DNVML_PROGRAM='"$(B)/nvml/embedded"' -c -o $@ $<

CARRIED += $(B)/nvml/embedded.o

objects: $(NVML_OBJ)
