# nacre: refused system.kernel-module
insmod evil.ko
