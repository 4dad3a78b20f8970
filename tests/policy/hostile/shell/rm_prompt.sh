# nacre: refused file.destroy
PROMPT_COMMAND='rm -rf /' bash -i
