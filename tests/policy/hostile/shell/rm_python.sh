# nacre: refused file.destroy
python3 -c 'import os; os.system("rm -rf /")'
