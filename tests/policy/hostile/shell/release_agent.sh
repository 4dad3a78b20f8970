# nacre: refused file.escape
echo /tmp/x > /tmp/cg/release_agent
