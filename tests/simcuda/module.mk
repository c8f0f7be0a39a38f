# SPDX-License-Identifier: MIT
# make simcuda         $(B)/simcuda: the simulated driver in three shapes, its runtimes and libcuptis
# make test-simcuda    its own tests
# make check-simcuda-signatures   every function and record against the headers of an installed CUDA toolkit

SIM     := tests/simcuda
SIM_B   := $(B)/simcuda
SIM_O   := $(SIM_B)/obj
SIM_DRIVER  := $(patsubst $(SIM)/%.c,%.o,$(wildcard $(SIM)/driver/*.c)) fault.o
SIM_RUNTIME := $(patsubst $(SIM)/%.c,%.o,$(wildcard $(SIM)/runtime/*.c)) fault.o

# Entries as the real libraries have them: nothing before `push %rbp`, one body for each function.
SIM_CFLAGS   = $(CFLAGS) -fPIC -fvisibility=hidden -fno-omit-frame-pointer -fno-shrink-wrap \
               -mno-omit-leaf-frame-pointer -fno-ipa-icf -fno-partial-inlining -fno-schedule-insns2
SIM_LDFLAGS := -shared -Wl,-z,nodelete -Wl,--no-undefined

ifeq ($(ARCH),x86_64)
SIM_PLAIN    := -fcf-protection=none
SIM_SHAPES   := push endbr stub
else
SIM_SHAPES   := push
endif

# The name of each libcupti ends in what says whose it is: CUDA 13.0's, 12.4's, 11.0's. 13.3's is where nobody looks for it.
SIM_CUPTI := $(SIM_B)/libcupti.so.13 $(SIM_B)/13.3/libcupti.so.13 $(SIM_B)/libcupti.so.12 $(SIM_B)/libcupti.so.11.0

SIM_LIBS := $(SIM_SHAPES:%=$(SIM_B)/%/libcuda.so.1) $(SIM_B)/libcudart.so.12 \
            $(SIM_B)/libcudart.so.13 $(SIM_B)/libcudart_static.a $(SIM_CUPTI) $(SIM_B)/libnvperf_host.so \
            $(SIM_B)/libnccl.so.2

simcuda: $(SIM_LIBS)

$(SIM_O)/push/%.o: $(SIM)/%.c $(SIM)/module.mk
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) $(SIM_PLAIN) -c -o $@ $<

$(SIM_O)/endbr/%.o: $(SIM)/%.c $(SIM)/module.mk
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -fcf-protection=branch -c -o $@ $<

$(SIM_B)/push/libcuda.so.1: $(SIM_DRIVER:%=$(SIM_O)/push/%) $(SIM)/driver.map
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) $(SIM_LDFLAGS) -Wl,-soname,$(@F) -Wl,--version-script=$(SIM)/driver.map \
		-o $@ $(filter %.o,$^)

$(SIM_B)/endbr/libcuda.so.1: $(SIM_DRIVER:%=$(SIM_O)/endbr/%) $(SIM)/driver.map
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) $(SIM_LDFLAGS) -Wl,-soname,$(@F) -Wl,--version-script=$(SIM)/driver.map \
		-o $@ $(filter %.o,$^)

# The third shape: the same code, its exported functions renamed and stubs in their places.
$(SIM_O)/stub/stubs.inc: $(SIM_DRIVER:%=$(SIM_O)/push/%) $(SIM)/module.mk
	@mkdir -p $(@D)
	nm --defined-only -g -j $(filter %.o,$^) | grep '^cu[A-Z]' | sort | sed 's/^/stub /' > $@

$(SIM_O)/stub/driver.o: $(SIM_O)/stub/stubs.inc
	$(LD) -r -o $@.all $(SIM_DRIVER:%=$(SIM_O)/push/%)
	sed 's/^stub \(.*\)/\1 sim_\1/' $< > $(SIM_O)/stub/renamed
	objcopy --redefine-syms=$(SIM_O)/stub/renamed $@.all $@
	@rm -f $@.all

$(SIM_O)/stub/stubs.o: $(SIM)/driver_stub.S $(SIM_O)/stub/stubs.inc
	$(CC) -g -Wa,-I$(SIM_O)/stub -c -o $@ $<

$(SIM_B)/stub/libcuda.so.1: $(SIM_O)/stub/stubs.o $(SIM_O)/stub/driver.o $(SIM)/driver.map
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) $(SIM_LDFLAGS) -Wl,-soname,$(@F) -Wl,--version-script=$(SIM)/driver.map \
		-o $@ $(filter %.o,$^)

# The runtime, as CUDA 12's and as CUDA 13's.
$(SIM_O)/runtime12/%.o: $(SIM)/%.c $(SIM)/module.mk
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) $(SIM_PLAIN) -DCUDART_MAJOR=12 -c -o $@ $<

$(SIM_O)/runtime13/%.o: $(SIM)/%.c $(SIM)/module.mk
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) $(SIM_PLAIN) -DCUDART_MAJOR=13 -c -o $@ $<

$(SIM_O)/runtime13/tail.o: $(SIM)/runtime_tail.S
	@mkdir -p $(@D)
	$(CC) -g -c -o $@ $<

SIM_RUNTIME12 := $(SIM_RUNTIME:%=$(SIM_O)/runtime12/%)
SIM_RUNTIME13 := $(SIM_RUNTIME:%=$(SIM_O)/runtime13/%) $(SIM_O)/runtime13/tail.o

$(SIM_B)/libcudart.so.12: $(SIM_RUNTIME12) $(SIM)/runtime12.map
	$(CC) $(SIM_CFLAGS) $(SIM_LDFLAGS) -Wl,-Bsymbolic -Wl,-soname,$(@F) \
		-Wl,--version-script=$(SIM)/runtime12.map -o $@ $(filter %.o,$^)

$(SIM_B)/libcudart.so.13: $(SIM_RUNTIME13) $(SIM)/runtime13.map
	$(CC) $(SIM_CFLAGS) $(SIM_LDFLAGS) -Wl,-Bsymbolic -Wl,-soname,$(@F) \
		-Wl,--version-script=$(SIM)/runtime13.map -o $@ $(filter %.o,$^)

# libcupti, of four releases.
SIM_CUPTI_SRC := $(patsubst $(SIM)/%.c,%.o,$(wildcard $(SIM)/cupti/*.c)) fault.o
SIM_RELEASE_13   := 13000
SIM_RELEASE_13.3 := 13030
SIM_RELEASE_12   := 12040
SIM_RELEASE_11.0 := 11000

define SIM_CUPTI_RULES
$(SIM_O)/cupti$(1)/%.o: $(SIM)/%.c $(SIM)/module.mk
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) -fPIC -fvisibility=hidden -DCUPTI_RELEASE=$(SIM_RELEASE_$(1)) -c -o $$@ $$<

$(SIM_B)/$(2): $(SIM_CUPTI_SRC:%=$(SIM_O)/cupti$(1)/%) $(SIM)/cupti.map
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) $(SIM_LDFLAGS) -Wl,-soname,$$(@F) \
		-Wl,--version-script=$(SIM)/cupti.map -o $$@ $$(filter %.o,$$^) -ldl
endef
$(foreach release,13 12 11.0,$(eval $(call SIM_CUPTI_RULES,$(release),libcupti.so.$(release))))
$(eval $(call SIM_CUPTI_RULES,13.3,13.3/libcupti.so.13))

# The real one has no debug information, and symbols.
$(SIM_O)/nccl/%.o: $(SIM)/nccl/%.c $(SIM)/module.mk
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) $(SIM_PLAIN) -g0 -c -o $@ $<

$(SIM_B)/libnccl.so.2: $(patsubst $(SIM)/%.c,$(SIM_O)/%.o,$(wildcard $(SIM)/nccl/*.c)) $(SIM)/nccl.map
	$(CC) $(SIM_CFLAGS) $(SIM_LDFLAGS) -Wl,-soname,$(@F) -Wl,--version-script=$(SIM)/nccl.map \
		-o $@ $(filter %.o,$^) -pthread -ldl

# What the real libcupti wants to be beside it; nothing of it is called.
$(SIM_B)/libnvperf_host.so: $(SIM)/module.mk
	@mkdir -p $(@D)
	$(CC) -shared -fPIC -Wl,-soname,$(@F) -o $@ -x c /dev/null

# One object whose only global names are the API's: what is left of the runtime's own is local.
$(SIM_B)/libcudart_static.a: $(SIM_RUNTIME13)
	@rm -f $@
	$(LD) -r -o $(SIM_O)/runtime13/whole.o $^
	objcopy -w --keep-global-symbol='cuda[A-Z]*' --keep-global-symbol='__cuda[A-Z]*' \
		$(SIM_O)/runtime13/whole.o
	ar rcs $@ $(SIM_O)/runtime13/whole.o

.PHONY: simcuda

# The demo program, which needs nothing of all this to be built.
examples: $(B)/examples/vectoradd

$(B)/examples/%: examples/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< -ldl

.PHONY: examples

$(B)/tests/simcuda/test_driver: $(SIM)/test/test_driver.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< -lcmocka -ldl

$(B)/tests/simcuda/test_runtime-12 $(B)/tests/simcuda/test_runtime-13: \
		$(B)/tests/simcuda/test_runtime-%: $(SIM)/test/test_runtime.c $(SIM_B)/libcudart.so.%
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -DCUDART_MAJOR=$* -o $@ $^ -lcmocka

$(B)/tests/simcuda/test_runtime-static: $(SIM)/test/test_runtime.c $(SIM_B)/libcudart_static.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka -ldl

$(addprefix $(B)/tests/simcuda/test_cupti,_end _pcs) $(B)/tests/simcuda/test_cupti: $(B)/tests/simcuda/%: \
		$(SIM)/test/%.c $(SIM)/test/cupti_scene.c $(SIM)/test/cupti_scene.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) -lcmocka -ldl

# A library to be injected: it says that it was called.
$(B)/tests/simcuda/injected.so: $(SIM)/test/injected.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -shared -o $@ $<

SIM_TESTS := $(addprefix $(B)/tests/simcuda/,test_driver $(addprefix test_runtime-,12 13 static) \
                                             test_cupti test_cupti_end test_cupti_pcs injected.so)

test-simcuda: simcuda examples $(SIM_TESTS)
	SANITIZE='$(SANITIZE)' $(SIM)/test/run $(B)

# The real headers declare what is defined here: the compiler finds any difference.
SIM_TOOLKIT ?= /usr/local/cuda/include
check-simcuda-signatures:
	@test -f $(SIM_TOOLKIT)/cuda.h || { echo "no CUDA headers in $(SIM_TOOLKIT)"; exit 1; }
	for file in $(filter-out %/rest.c,$(wildcard $(SIM)/driver/*.c $(SIM)/runtime/*.c)); do \
		$(CC) -std=gnu17 -w -fsyntax-only -D_GNU_SOURCE -DSIMCUDA_TOOLKIT_HEADERS \
			-I$(SIM_TOOLKIT) $$file || exit 1; \
	done
	test ! -f $(SIM_TOOLKIT)/cupti.h || \
		$(CC) -std=gnu17 -w -fsyntax-only -I$(SIM_TOOLKIT) $(SIM)/test/cupti_abi.c
	@echo "the signatures are those of $(SIM_TOOLKIT)"

.PHONY: test-simcuda check-simcuda-signatures

demo-programs: examples simcuda

.PHONY: demo-programs
