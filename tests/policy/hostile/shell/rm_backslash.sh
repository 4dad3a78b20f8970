# nacre: refused file.destroy
\rm -rf /
