# nacre: refused file.destroy
rm${IFS}-rf${IFS}/
