# nacre: refused file.destroy
git -c core.pager='rm -rf /' log
