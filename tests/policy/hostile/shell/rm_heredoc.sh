# nacre: refused file.destroy
bash <<EOF
rm -rf /
EOF
