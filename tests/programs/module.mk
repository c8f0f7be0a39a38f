# SPDX-License-Identifier: MIT
# make programs    $(B)/programs: small programs that use CUDA and count what they did, for tests/integration

PROG      := tests/programs
PROG_B    := $(B)/programs
PROG_PLAIN := threads fork crowd exec dlopen capture errors tight longjmp threadexit waitload loop seccomp \
              memory copies toolkit ptsz blocked reload nested waits live places fibers \
              gpustreams gpugraphs gpunodes gpucopies gpuloop gpufork gpuidle gpulast gpudevices sleeper hostwaits waker closes unloads getters twice launcher churn driverflood devicefds patches
PROG_ALL  := $(PROG_PLAIN:%=$(PROG_B)/%) $(PROG_B)/nvtx $(PROG_B)/ownroot $(PROG_B)/throw $(PROG_B)/leak $(PROG_B)/runtime12 $(PROG_B)/runtime13 $(PROG_B)/refused $(PROG_B)/answers \
             $(PROG_B)/static $(PROG_B)/static-stripped \
             $(addprefix $(PROG_B)/,frames frames-static frames-stripped libframelib.so libframebare.so libframegap.so libframenone.so hooked libhooked.so.1 libclockstep.so torchops libtorch_cpu.so framethrow engine libtorch_python_engine inlined stackpoints gostack) \
             $(PROG_B)/layer/libcuda.so.1

PROG_CFLAGS = $(filter-out -Isrc,$(CFLAGS)) -Itests

programs test-programs: $(PROG_ALL)

$(PROG_B)/%.o: $(PROG)/%.c
	@mkdir -p $(@D)
	$(CC) $(PROG_CFLAGS) -c -o $@ $<

$(PROG_B)/throw.o $(PROG_B)/leak.o: $(PROG_B)/%.o: $(PROG)/%.cc
	@mkdir -p $(@D)
	$(CXX) -O2 -g -Wall -Wextra -Werror -fno-omit-frame-pointer -D_GNU_SOURCE -Itests -MMD -MP -c -o $@ $<

$(PROG_PLAIN:%=$(PROG_B)/%): %: %.o $(PROG_B)/sample.o
	$(CC) $(PROG_CFLAGS) -o $@ $^ -ldl

$(PROG_B)/nvtx: $(PROG_B)/nvtx.o $(PROG_B)/nvtxcalls.o $(PROG_B)/sample.o
	$(CC) $(PROG_CFLAGS) -o $@ $^ -ldl

$(PROG_B)/ownroot: $(PROG_B)/ownroot.o
	$(CC) $(PROG_CFLAGS) -o $@ $^

$(PROG_B)/throw $(PROG_B)/leak: %: %.o $(PROG_B)/sample.o
	$(CXX) -pthread -o $@ $^ -ldl

$(PROG_B)/runtime%.o: $(PROG)/runtime.c
	@mkdir -p $(@D)
	$(CC) $(PROG_CFLAGS) -DCUDART_MAJOR=$* -c -o $@ $<

$(PROG_B)/runtime%: $(PROG_B)/runtime%.o $(PROG_B)/sample.o $(B)/simcuda/libcudart.so.%
	$(CC) $(PROG_CFLAGS) -o $@ $^ -ldl

$(PROG_B)/refused $(PROG_B)/answers: %: %.o $(PROG_B)/sample.o $(B)/simcuda/libcudart.so.13
	$(CC) $(PROG_CFLAGS) -o $@ $^ -ldl

$(PROG_B)/static: $(PROG_B)/runtime13.o $(PROG_B)/sample.o $(B)/simcuda/libcudart_static.a
	$(CC) $(PROG_CFLAGS) -o $@ $^ -ldl

$(PROG_B)/static-stripped: $(PROG_B)/static
	strip -o $@ $<

# What profiles are compared with: no frame pointers, and nothing of CUDA.
FRAMES_CFLAGS = -O3 -fomit-frame-pointer -Wall -Wextra -Werror -D_GNU_SOURCE -MMD -MP

$(PROG_B)/frames $(PROG_B)/frames-static: $(PROG)/frames.c
	@mkdir -p $(@D)
	$(CC) $(FRAMES_CFLAGS) -pthread $(if $(findstring static,$@),-static -Wno-error) -o $@ $< -ldl

# With debug information, which tests move elsewhere.
$(PROG_B)/inlined: $(PROG)/inlined.c
	@mkdir -p $(@D)
	$(CC) -O2 -g -fno-unroll-loops -Wall -Wextra -Werror -D_GNU_SOURCE -Wl,--build-id=sha1 -o $@ $<

$(PROG_B)/frames-stripped: $(PROG_B)/frames
	strip -o $@ $<

$(PROG_B)/libframelib.so: $(PROG)/framelib.c
	@mkdir -p $(@D)
	$(CC) $(FRAMES_CFLAGS) -fPIC -shared -o $@ $<

# Without unwind tables: with frame pointers, the same in a file that has tables of other code, and without anything.
$(PROG_B)/libframebare.so: FRAME_POINTER = -fno-omit-frame-pointer
$(PROG_B)/libframegap.so: FRAME_POINTER = -fno-omit-frame-pointer -DWITH_A_TABLE
$(PROG_B)/libframebare.so $(PROG_B)/libframegap.so $(PROG_B)/libframenone.so: $(PROG)/framelib.c
	@mkdir -p $(@D)
	$(CC) $(FRAMES_CFLAGS) $(FRAME_POINTER) -fno-asynchronous-unwind-tables -fno-unwind-tables -fPIC -shared -o $@ $<

$(PROG_B)/layer/libcuda.so.1: $(PROG)/layer.c
	@mkdir -p $(@D)
	$(CC) -O0 -Wall -Wextra -Werror -Wno-pedantic -Itests -D_GNU_SOURCE -fPIC -shared -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -o $@ $< -ldl

$(PROG_B)/libclockstep.so: $(PROG)/clockstep.c
	@mkdir -p $(@D)
	$(CC) -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -fPIC -shared -o $@ $<

# For hooks of one's own: optimized, as libraries are.
$(PROG_B)/libhooked.so.1: $(PROG)/hooklib.c $(PROG)/hooklib.h
	@mkdir -p $(@D)
	$(CC) -O1 -Wall -Wextra -Werror -Wno-unused-parameter -Itests -D_GNU_SOURCE -fPIC -shared -fno-optimize-sibling-calls -Wl,-soname,libhooked.so.1 -o $@ $<

$(PROG_B)/hooked: $(PROG)/hooked.c $(PROG)/hooklib.h $(PROG_B)/libhooked.so.1
	$(CC) -O2 -Wall -Wextra -Werror -Itests -D_GNU_SOURCE -o $@ $< $(PROG_B)/libhooked.so.1 -Wl,-rpath,'$$ORIGIN'

# The names of PyTorch's operators.
$(PROG_B)/libtorch_cpu.so: $(PROG)/torchlib.cc $(PROG)/torchlib.h
	@mkdir -p $(@D)
	$(CXX) -O1 -Wall -Wextra -Werror -Itests -fPIC -shared -fno-optimize-sibling-calls -Wl,-soname,libtorch_cpu.so -o $@ $<

$(PROG_B)/torchops: $(PROG)/torchops.cc $(PROG)/torchlib.h $(PROG_B)/libtorch_cpu.so
	$(CXX) -O2 -Wall -Wextra -Werror -Itests -o $@ $< $(PROG_B)/libtorch_cpu.so -Wl,-rpath,'$$ORIGIN'

$(PROG_B)/gostack: $(PROG)/gostack.c
	@mkdir -p $(@D)
	$(CC) -O1 -Wall -Wextra -Werror -D_GNU_SOURCE -o $@ $<

$(PROG_B)/framethrow: $(PROG)/framethrow.cc
	@mkdir -p $(@D)
	$(CXX) $(FRAMES_CFLAGS) -pthread -o $@ $<

STACKPOINTS = $(addprefix $(PROG)/,stackpoints.cc stackways.cc stackways_libraries.cc)

$(PROG_B)/stackpoints: $(STACKPOINTS) $(PROG)/stackpoints.h
	@mkdir -p $(@D)
	$(CXX) -std=c++20 $(filter-out -MMD -MP,$(FRAMES_CFLAGS)) -pthread -o $@ $(STACKPOINTS) -ldl

# Its functions are found by their names, as those of a library are.
$(PROG_B)/engine: $(PROG)/engine.cc
	@mkdir -p $(@D)
	$(CXX) $(FRAMES_CFLAGS) -rdynamic -pthread -o $@ $<

# As in PyTorch: not exported, and in a file of that name.
$(PROG_B)/libtorch_python_engine: $(PROG)/engine.cc
	@mkdir -p $(@D)
	$(CXX) $(FRAMES_CFLAGS) -pthread -o $@ $<

.SECONDARY: $(PROG_B)/runtime12.o $(PROG_B)/runtime13.o

.PHONY: programs test-programs
