# SPDX-License-Identifier: MIT
# make simnvml    $(B)/simnvml/libnvidia-ml.so.1: a management library for tests

simnvml: $(B)/simnvml/libnvidia-ml.so.1

$(B)/simnvml/libnvidia-ml.so.1: tests/simnvml/nvml.c
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS)) -fPIC -shared -Wl,-soname,$(@F) -o $@ $<

.PHONY: simnvml
