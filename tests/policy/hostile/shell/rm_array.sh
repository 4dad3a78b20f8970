# nacre: refused file.destroy
words=(rm -rf /)
"${words[@]}"
