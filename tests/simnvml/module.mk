# SPDX-License-Identifier: MIT
# make simnvml    $(B)/simnvml/libnvidia-ml.so.1: a management library for tests

simnvml: $(B)/simnvml/libnvidia-ml.so.1

SIMNVML_SRC := tests/simnvml/nvml.c tests/simnvml/settings.c tests/simnvml/health.c tests/simnvml/gpm.c

$(B)/simnvml/libnvidia-ml.so.1: $(SIMNVML_SRC) tests/simnvml/settings.h
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS)) -fPIC -shared -Wl,-soname,$(@F) -o $@ $(SIMNVML_SRC)

.PHONY: simnvml
