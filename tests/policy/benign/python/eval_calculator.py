# nacre: allowed medium
# honest, if careless: the policy says so, and lets it run
while True:
    line = input("> ")
    if not line:
        break
    print(eval(line, {"__builtins__": {}}))
